package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) reconcileCommand() *cobra.Command {
	var uninstall bool
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Check the units of all missions and mend what no tick can",
		Long: "Check the units and missions of the systemd engine, in every root, and mend what is wrong: put lost units back,\n" +
			"start dead timers, carry stops to their end, take the units of vanished missions away. The host's timer runs it\n" +
			"every hour. It says what it did, and nothing where nothing was wrong. What it cannot see for sure it leaves alone,\n" +
			"says so and ends with 4.",
		Example: "  AutoAgentProject reconcile\n  AutoAgentProject reconcile --uninstall",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := c.reconciler()
			if err != nil {
				return err
			}
			if uninstall {
				left, _ := filepath.Glob(filepath.Join(e.Settings.UnitDir, "forge-autoagent*"))
				if err := e.Answers(cmd.Context(), e.Settings.Manager); err != nil && len(left) == 0 {
					return nil // a machine without systemd has nothing to take away
				}
				return e.RemoveHost(cmd.Context())
			}
			rep, err := e.Reconcile(cmd.Context())
			if c.json {
				if rep.Items == nil {
					rep.Items = []systemdengine.Item{}
				}
				if err := c.printJSON(rep); err != nil {
					return err
				}
			} else {
				for _, i := range rep.Items {
					c.say("%s", repairText(i, e.Root))
				}
			}
			switch {
			case err != nil:
				return usererr.Wrap(err, usererr.Later, "", "it was cut off")
			case rep.Has(systemdengine.Unknown):
				return quiet(usererr.Environment)
			case rep.Has(systemdengine.Failed):
				return quiet(usererr.Failed)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&uninstall, "uninstall", false, "take the hourly timer away; refused while a mission has units")
	return cmd
}

// reconciler is the engine with the manager of whoever runs this, for all roots. Root's own configuration names no root of
// missions; the unit that runs this has no home folder either.
func (c *cli) reconciler() (*systemdengine.Engine, error) {
	if os.Geteuid() == 0 {
		if err := onlyRootsPrograms(); err != nil {
			return nil, err
		}
	}
	if os.Geteuid() == 0 && c.rootFlag == "" {
		c.rootFlag = systemRoot
	}
	root, err := c.store()
	if err != nil {
		return nil, err
	}
	log := c.stderrLog("autoagent-reconcile", "")
	open := func(root store.Root) (*systemdengine.Engine, error) {
		e, err := c.newSystemd(root, ownManager(), log)
		if err == nil && e.Settings.Manager == units.System {
			e.Mark = func(ctx context.Context, id string, stop mission.Stop) error {
				return c.letOwnerWrite(ctx, root, writeTombstone, id, stop)
			}
		}
		return e, err
	}
	e, err := open(root)
	if err != nil {
		return nil, err
	}
	e.Open = open
	return e, nil
}

// repairText is a repair in a line.
func repairText(i systemdengine.Item, root store.Root) string {
	whose := "host"
	switch {
	case i.Mission != "" && (i.Root == "" || i.Root == string(root)):
		whose = "mission " + i.Mission
	case i.Mission != "":
		whose = fmt.Sprintf("mission %s below %s", i.Mission, i.Root)
	case i.Root != "":
		whose = "root " + i.Root
	}
	switch i.Outcome {
	case systemdengine.Unknown:
		return whose + ": nothing was touched: " + i.Text
	case systemdengine.Failed:
		return whose + ": not mended: " + i.Text
	}
	return whose + ": " + i.Text
}
