package app

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/usererr"
)

//go:embed demo.json
var demoScript []byte

// demoGoal is what the demo asks for.
const demoGoal = "Build a landing page for a small bakery: one HTML page with opening hours, a style sheet, a script that says whether the shop is open now, and a test that checks the page."

// demoVerify is the demo's proof, in a fresh checkout.
const demoVerify = "node --test"

func (c *cli) demoCommand() *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a small real mission whose model is played from a script",
		Long: "Run a small mission from goal to result: the real agent program, git, ticks and walls build a web page with a test.\n" +
			"Only the model is played from a script on this machine's loopback, so it needs no login and costs nothing.",
		Example: "  AutoAgentProject demo",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.demo(cmd.Context(), dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`folder` for the demo's root (default a new one in the temporary folder)")
	return cmd
}

func (c *cli) demo(ctx context.Context, dir string) error {
	script, err := scriptmodel.Parse(demoScript)
	if err != nil {
		return err
	}
	if dir == "" {
		dir, err = os.MkdirTemp("", "autoagent-demo-")
	} else {
		dir, err = filepath.Abs(dir)
	}
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return usererr.Wrap(err, usererr.Environment, "give --dir", "there is no place for the demo")
	}
	model, err := scriptmodel.New(script, scriptmodel.Options{})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return usererr.Wrap(err, usererr.Environment, "", "the scripted model cannot listen on loopback")
	}
	served := make(chan error, 1)
	go func() { served <- model.Serve(l) }()
	defer func() {
		model.Close()
		<-served
	}()
	creds := filepath.Join(dir, "demo-login.json")
	if err := login.Write(creds, login.File{Kind: login.APIKey, Secret: "scripted-model-needs-no-key"}); err != nil {
		return err
	}
	c.rootFlag = dir
	if !c.json {
		c.say("This is a real mission with the real agent program, git, ticks and walls. Only the model's part is scripted.")
		c.say("")
	}
	o := startOptions{budget: "2usd", maxHours: "0.5", specialists: "codebuilder:2,designer:1", verify: demoVerify, scripted: true, wait: true, noLinger: true,
		upstream: "http://" + l.Addr().String(), login: creds}
	if os.Geteuid() == 0 {
		o.runAs = "root" // inside the walls it is a plain user; nothing but the script decides what it does
	}
	id := fmt.Sprintf("demo-%s", time.Now().UTC().Format("150405"))
	return c.start(ctx, id, demoGoal, true, o)
}
