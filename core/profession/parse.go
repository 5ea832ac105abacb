package profession

import "example.com/AutoAgentProject/core/front"

// Limits of a profession file.
const (
	MaxName   = 37     // characters; an agent's name, with a dash and two digits more, has at most 40
	MaxOutput = 128000 // tokens of one response
	MaxTurns  = 1000   // model requests a file may ask for
)

// Parse reads a profession file. file is its name for messages. Every error is a usererr of code Usage that begins
// with file and line. The soul and the workplace are left empty, see Set.With.
func Parse(file string, data []byte) (Profession, error) {
	parts, err := front.Read(file, data, "name and description")
	if err != nil {
		return Profession{}, err
	}
	if parts.Body == "" {
		return Profession{}, front.Fault(file, parts.End, "", "there are no instructions below the front matter")
	}
	r := reader{file: file, said: map[string]int{}, p: Profession{Source: file, Body: parts.Body}}
	for _, e := range parts.Entries {
		if err := r.entry(e); err != nil {
			return Profession{}, err
		}
	}
	return r.finish()
}
