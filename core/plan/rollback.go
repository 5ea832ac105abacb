package plan

import "fmt"

// Back is the plan as it was at a checkpoint, so that the baton goes on from there. Numbers of visits that were used since are not used
// again, and the next visit is told why.
func (p *Plan) Back(then Plan, n int, reason string) {
	b := *then.Baton
	if p.Baton != nil {
		b.Skip = max(0, p.Baton.Visit-b.Visit)
	}
	b.Told = fmt.Sprintf("A person rolled the work back to checkpoint %d. The reason: %s", n, reason)
	then.Baton, then.Checkpoints, then.Final = &b, n, Final{}
	*p = then
}
