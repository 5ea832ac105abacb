// Package prompts holds the texts that agents are told: professions, souls, the workplace they share, and flows.
package prompts

import (
	"embed"
	"io/fs"
)

//go:embed professions/*.md souls/*.md flows/*.md workplace.md
var files embed.FS

// Files are the texts: professions/<name>.md, souls/<name>.md, flows/<id>.md and workplace.md.
func Files() fs.FS { return files }
