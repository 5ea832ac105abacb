package testkit

import (
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
)

// Hostile is text that shows itself where somebody forgot that it is only text.
const Hostile = `<script>window.hacked=1</script><img src=x onerror="window.hacked=1">"><svg onload=window.hacked=1>{{.}}` + "\u202e" + `${jndi:x} javascript:alert(1)`

// Secrets are what a dashboard must never show, wherever a mission holds it.
func Secrets() []string {
	return []string{"sk-ant-" + "api03-EXAMPLEexampleEXAMPLE0123456789", "1234567890:" + "AAExampleExampleExampleExampleExam", "ghp_" + "ExampleExampleExampleExample012345",
		"NONCE-OF-A-BUTTON", "/home/example/.config/autoagent/login.json", "/opt/example/claude"}
}

// Scenes are missions in every state that people come to see. The name of each is its id.
func Scenes(t testing.TB, root store.Root, now time.Time) map[string]*Told {
	t.Helper()
	h, m := time.Hour, time.Minute
	all := map[string]*Told{}

	w := Tell(t, root, "my-site", "Build a small site for a bakery.\n\nThree pages: what we bake, where we are, when we are open.\nIt must read well on a phone.\n", now, 100*m)
	all["my-site"] = w
	w.Event(96*m, journal.PlanAccepted, journal.Milestone, "manager", "", "", "plan accepted: 6 steps")
	w.Run("manager", "", 99*m, 96*m, runner.Done, 11, Said("Three pages and one layout: I split it by page."))
	s := w.Step("layout", "Lay out the frame of all pages", "codebuilder", "codebuilder-1", plan.Done, 78*m)
	s.Summary, s.Merge = "The frame stands: head, navigation, foot. All pages share it.", "0123456789abcdef0123456789abcdef01234567"
	w.Handoff("manager", "codebuilder-1", "layout", 96*m, 95*m, 78*m)
	w.Run("codebuilder-1", "layout", 95*m, 80*m, runner.Done, 42, Said("I begin with the frame."), Used("Write", "file_path", "index.html", "written"), Used("Bash", "command", "make test", "ok  3 tests"))
	s = w.Step("bread", "Write the page about bread", "codebuilder", "codebuilder-1", plan.Done, 50*m, "layout")
	s.Reasons = []string{"verify: make test\n--- FAIL: the page has no heading\nexit status 1"}
	s.Handoffs = append(s.Handoffs, s.Handoffs[0])
	w.Handoff("codebuilder-1", "codebuilder-1", "bread", 78*m, 77*m, 62*m)
	w.Run("codebuilder-1", "bread", 77*m, 63*m, runner.Failed, 24, Used("Edit", "file_path", "bread.html", "ok"))
	w.Event(62*m, journal.VerifyFailed, journal.Routine, "codebuilder-1", "bread", "", "step bread: its verify failed: the page has no heading")
	w.Event(62*m, journal.StepReturned, journal.Routine, "codebuilder-1", "bread", "", "step bread goes back: the page has no heading")
	w.Handoff("codebuilder-1", "codebuilder-1", "bread", 62*m, 61*m, 50*m)
	w.Run("codebuilder-1", "bread", 61*m, 51*m, runner.Done, 31, Used("Edit", "file_path", "bread.html", "ok"))
	w.Event(50*m, journal.StepDone, journal.Milestone, "codebuilder-1", "bread", "", "step bread is done")
	w.Step("map", "Draw the way to the bakery", "codebuilder", "codebuilder-2", plan.Done, 41*m, "layout")
	w.Handoff("codebuilder-1", "codebuilder-2", "map", 78*m, 76*m, 41*m)
	w.Run("codebuilder-2", "map", 76*m, 42*m, runner.Done, 55, Used("Write", "file_path", "map.svg", "written"))
	w.Event(41*m, journal.StepDone, journal.Milestone, "codebuilder-2", "map", "", "step map is done")
	w.Step("hours", "Say when it is open, holidays too", "codebuilder", "codebuilder-2", plan.Working, 12*m, "map")
	w.Handoff("codebuilder-2", "codebuilder-2", "hours", 40*m, 12*m, 0)
	run := w.Run("codebuilder-2", "hours", 12*m, 0, "", 0, Said("Holidays move. I keep them in a table."), Used("Read", "file_path", "index.html", "<html>…"))
	w.Line("codebuilder-2", "working", "works on hours: holidays as a table", "hours", run, 12*m)
	w.Step("phone", "Try every page at the width of a phone", "tester", "tester-1", plan.Working, 9*m, "bread")
	w.Handoff("codebuilder-1", "tester-1", "phone", 50*m, 9*m, 0)
	run = w.Run("tester-1", "phone", 9*m, 0, "", 0, Used("Bash", "command", "make shots", "bread.png 360x800"))
	w.Line("tester-1", "working", "works on phone: looks at bread", "phone", run, 9*m)
	w.Step("final", "Read everything once more", "tester", "", plan.Waiting, 96*m, "hours", "phone")
	w.Line("manager", "waiting", "waits for 2 steps", "", "", 9*m)
	w.Line("codebuilder-1", "idle", "did bread", "", "", 50*m)
	w.Repo("site: add a page", map[string]string{"index.html": "<!doctype html>\n<title>Bakery</title>\n", "bread.html": "<h1>Bread</h1>\n", "map.svg": "<svg/>\n", "style.css": "body { color: #222 }\n"})
	w.Ticked()
	w.Write("working")

	w = Tell(t, root, "shop-cart", "Add taxes to the cart of the shop.\n", now, 3*h)
	all["shop-cart"] = w
	w.Step("rates", "Keep the rates in one table", "codebuilder", "codebuilder-1", plan.Done, 2*h)
	w.Step("cart", "Show the tax in the cart", "codebuilder", "codebuilder-1", plan.Failed, 70*m, "rates").Reasons = []string{"the shop has no country of the customer"}
	w.Handoff("manager", "codebuilder-1", "rates", 170*m, 169*m, 120*m)
	w.Handoff("codebuilder-1", "codebuilder-1", "cart", 120*m, 119*m, 70*m)
	w.Run("codebuilder-1", "rates", 169*m, 121*m, runner.Done, 66)
	w.Run("codebuilder-1", "cart", 119*m, 72*m, runner.Failed, 81)
	w.Ask(1, "Leave out customers from abroad", "The new plan leaves out an acceptance of the first one:\n\n- the tax fits the customer's country\n\nSay yes if taxes of one country are enough.", 65*m, nil)
	w.JSON("pauses.json", store.Pauses{Version: 1, Causes: []mission.Pause{{Cause: "approval", Reason: "approval 1: Leave out customers from abroad", Since: now.Add(-65 * m), Until: now.Add(22 * h)}}})
	w.Line("manager", "waiting", "waits for approval 1", "", "", 65*m)
	w.Event(65*m, journal.ApprovalAsked, journal.Blocker, "manager", "", "", "approval 1 is asked for: Leave out customers from abroad")
	w.Ticked()
	w.Write("planning")

	w = Tell(t, root, "docs-cleanup", "Bring the documentation into order.\n", now, 30*h)
	all["docs-cleanup"] = w
	for i, id := range []string{"list", "merge", "links"} {
		d := time.Duration(i) * 20 * m
		needs := []string{}
		if i > 0 {
			needs = []string{w.Plan.Steps[i-1].ID}
		}
		w.Step(id, []string{"List what there is", "Merge what says the same", "Mend the links"}[i], "codebuilder", "codebuilder-1", plan.Done, 29*h-d, needs...)
		w.Handoff("manager", "codebuilder-1", id, 29*h+25*m-d, 29*h+24*m-d, 29*h+6*m-d)
		w.Run("codebuilder-1", id, 29*h+24*m-d, 29*h+6*m-d, runner.Done, 37, Used("Edit", "file_path", id+".md", "ok"))
		w.Event(29*h-d, journal.StepDone, journal.Milestone, "codebuilder-1", id, "", "step "+id+" is done")
	}
	w.Plan.Final = plan.Final{Commit: strings.Repeat("a", 40), Passed: true}
	w.Ask(1, "Drop the old handbook", "Nobody read it since 2019.", 29*h, &mission.Decision{Verdict: mission.Approved, Note: "yes, it is old", By: "person at the terminal", Key: "k", At: now.Add(-28 * h)})
	w.Repo("docs: mend", map[string]string{"docs/README.md": "# Documentation\n", "docs/links.md": "all mended\n"})
	w.Stopped(mission.Completed, "manager", "all 3 steps are done and the verify passed", 28*h)
	w.Write("completed")

	w = Tell(t, root, "api-port", "Port the API to the new framework.\n", now, 6*h)
	all["api-port"] = w
	w.Step("routes", "Move the routes", "codebuilder", "codebuilder-1", plan.Done, 4*h)
	w.Step("auth", "Move the login", "codebuilder", "codebuilder-2", plan.Working, 3*h, "routes")
	w.Run("codebuilder-1", "routes", 5*h+30*m, 4*h+5*m, runner.Done, 205)
	w.Run("codebuilder-2", "auth", 4*h, 3*h+2*m, runner.Killed, 193)
	w.Event(3*h+2*m, journal.BudgetCrossed, journal.Blocker, "quota", "", "", "100% of the budget is used")
	w.Stopped(mission.Budget, "quota", "the budget of $4.00 is used up", 3*h)
	w.Write("halted: budget")

	w = Tell(t, root, "old-import", "Import the old orders.\n", now, 50*h)
	all["old-import"] = w
	w.Step("read", "Read the old files", "codebuilder", "codebuilder-1", plan.Working, 49*h)
	w.Run("codebuilder-1", "read", 49*h, 48*h, runner.Done, 20, Said("Half of them are CSV."))
	w.Stopped(mission.Damage, "manager", "plan.json cannot be read", 47*h)
	w.Write("working")
	w.Put("plan.json", "{\"version\": 1, \"steps\": [{\"id\":")
	w.Put("state.json", strings.Repeat("\x00", 4096))
	w.Put("agents/codebuilder-1/hold.json", "")

	w = Tell(t, root, "torn", "Something whose beginning was lost.\n", now, 20*h)
	all["torn"] = w
	w.Step("one", "The only step", "codebuilder", "codebuilder-1", plan.Done, 19*h)
	w.Run("codebuilder-1", "one", 19*h, 18*h, runner.Done, 10, Said("It is done."))
	w.Write("working")
	w.Put("mission.json", "")

	w = Tell(t, root, "hostile", Hostile+"\n"+strings.Join(Secrets()[:3], "\n")+"\n", now, 40*m)
	all["hostile"] = w
	w.M.Verify, w.M.Payer = Hostile, Hostile
	s = w.Step("step", Hostile, "codebuilder", "codebuilder-1", plan.Working, 30*m)
	s.Brief, s.Summary, s.Reasons, s.Acceptance = Hostile, Hostile, []string{Hostile + " token=" + Secrets()[2]}, []string{Hostile}
	w.Handoff("manager", "codebuilder-1", "step", 30*m, 29*m, 0)
	run = w.Run("codebuilder-1", "step", 29*m, 0, "", 0, Said(Hostile+" "+strings.Join(Secrets()[:3], " ")), Used("Bash", "command", "echo "+Hostile+" "+Secrets()[0], Hostile+" "+Secrets()[1]), "not json", `{"type":"nonsense"}`)
	w.Line("codebuilder-1", "working", Hostile, "step", run, 29*m)
	w.Event(20*m, journal.RunEnded, journal.Blocker, "codebuilder-1", "step", run, Hostile+" "+Secrets()[0])
	w.Ask(1, Hostile, Hostile+"\n"+Secrets()[1], 10*m, nil)
	w.Repo(Hostile, map[string]string{`<script>window.hacked=1<`: Hostile, "plain.txt": "the key is " + Secrets()[0] + "\n"})
	w.Ticked()
	w.Write("working")
	return all
}
