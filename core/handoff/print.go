package handoff

import (
	"fmt"
	"strings"
)

// Item is a handoff file and where it lies.
type Item struct {
	Path string `json:"path"` // absolute
	Text Text   `json:"text"`
}

// Unit is what an agent holds at once: one task, or a batch.
type Unit struct {
	Batch string `json:"batch,omitempty"` // folder of the batch; empty: a single task
	Items []Item `json:"items"`           // by name; at least one
}

// String is what the protocol prints of a unit.
func (u Unit) String() string {
	var b strings.Builder
	if u.Batch == "" {
		for _, i := range u.Items {
			i.print(&b)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "BATCH: %s\nCOUNT: %d\nPRIORITY: %s\n", u.Batch, len(u.Items), u.Items[0].Text.Priority())
	for n, i := range u.Items {
		fmt.Fprintf(&b, "\nBATCH_ITEM: %d\n", n+1)
		i.print(&b)
	}
	return b.String()
}

func (i Item) print(b *strings.Builder) {
	fmt.Fprintf(b, "TASK: %s\nFROM: %s\nTYPE: %s\nPRIORITY: %s\n", i.Path, i.Text.Or("from", "unknown"), i.Text.Or("type", "unknown"), i.Text.Priority())
	if task, ok := i.Text.Field("task"); ok {
		fmt.Fprintf(b, "TASK_NAME: %s\n", task)
	}
	b.WriteString("PAYLOAD:\n" + i.Text.Body())
}

// Finished is what was completed: the new paths of the items.
type Finished struct {
	Batch string   `json:"batch,omitempty"` // the batch's folder; empty: a single task
	Paths []string `json:"paths"`
}

// String is what the protocol prints of it.
func (f Finished) String() string {
	var b strings.Builder
	for _, p := range f.Paths {
		fmt.Fprintf(&b, "COMPLETED: %s\n", p)
	}
	if f.Batch != "" {
		fmt.Fprintf(&b, "COMPLETED_BATCH: %s\n", f.Batch)
	}
	return b.String()
}

// NoTask is what is printed when there is nothing to do.
const NoTask = "NO_TASK\n"
