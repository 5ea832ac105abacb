// Package prompts holds the texts that agents are told: professions, souls, and the workplace they share.
package prompts

import (
	"embed"
	"io/fs"
)

//go:embed professions/*.md souls/*.md workplace.md
var files embed.FS

// Files are the texts: professions/<name>.md, souls/<name>.md and workplace.md.
func Files() fs.FS { return files }
