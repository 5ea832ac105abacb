package tick

import "example.com/AutoAgentProject/core/runner"

// say is the sentence of a log line for what a run of an agent shows of itself.
func say(agent string, e runner.Event) string {
	switch e.Kind {
	case "start":
		return agent + " has the model " + e.Text
	case "tool":
		return agent + " uses " + e.Text
	case "text":
		return agent + " says: " + e.Text
	case "usage":
		return agent + " has used " + e.Text + " in this run"
	case "retry":
		return agent + " has to ask the model again: " + e.Text
	case "limit":
		return agent + " is told of a limit of the account: " + e.Text
	case "result":
		return agent + " has a result: " + e.Text
	}
	return agent + " (" + e.Kind + "): " + e.Text
}
