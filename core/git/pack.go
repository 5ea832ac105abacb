package git

import (
	"context"
	"fmt"
)

// Pack packs the objects of the repository and drops loose ones that nothing names for two weeks. References stay single files,
// because others swap them meanwhile.
func (r Repo) Pack(ctx context.Context) error {
	if _, err := r.git(ctx, "-c", "gc.packRefs=false", "gc", "--quiet"); err != nil {
		return fmt.Errorf("pack %s: %w", r.Dir, err)
	}
	return nil
}
