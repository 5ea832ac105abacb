package claude

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/runner"
)

// outcome is a verdict with its grounds.
type outcome struct {
	verdict runner.Verdict
	class   string
	reason  string
	resetAt time.Time
}

func (o outcome) good() bool { return o.verdict == runner.Done }

func failed(class, format string, args ...any) outcome {
	return outcome{verdict: runner.Failed, class: class, reason: fmt.Sprintf(format, args...)}
}

const rejected = "rejected" // a limit's status: requests are refused

// facts is what was seen of a run up to a result.
type facts struct {
	greeted bool        // system/init came and was right
	schema  bool        // a structured answer was asked for
	limit   *limit      // the last word about the account's usage
	failure *apiFailure // of the last message that told an API error; nil: none since the turn began
}

// judge says what a result means. Only the fields by which the program speaks count: what a tool printed or a model
// wrote about limits and errors is text.
func judge(e *event, f facts, now time.Time) outcome {
	if good, _ := e.says(); !good || e.Subtype != "success" {
		return judgeError(e, f, now)
	}
	switch {
	case e.Terminal != "completed":
		return failed("stopped", "the program ended with the reason %q", oneLine(e.Terminal))
	case e.StopReason == "refusal":
		return failed("refusal", "the model refused to answer")
	case e.StopReason != "end_turn" && e.StopReason != "stop_sequence" && e.StopReason != "tool_use" && e.StopReason != "":
		return failed("stopped", "the model stopped with the reason %q", oneLine(e.StopReason))
	case f.schema && (len(e.Structured) == 0 || bytes.Equal(e.Structured, []byte("null"))):
		return failed("bad-output", "the structured answer is missing")
	case strings.TrimSpace(e.Result) == "" && !f.schema:
		return failed("empty", "the answer is empty")
	case !f.greeted:
		return failed("init-mismatch", "the program answered without saying how it was set up")
	}
	return outcome{verdict: runner.Done}
}

// judgeError says what an unsuccessful result means.
func judgeError(e *event, f facts, now time.Time) outcome {
	said := oneLine(e.Result)
	if said == "" {
		said = oneLine(strings.Join(e.Errors, "; "))
	}
	kind := ""
	if f.failure != nil {
		kind = f.failure.Error
	}
	switch e.Subtype {
	case "error_max_turns":
		return failed("max-turns", "%s", said)
	case "error_max_budget_usd":
		return failed("budget", "%s", said)
	case "error_max_structured_output_retries":
		return failed("bad-output", "%s", said)
	}
	_, bad := e.says()
	limited := f.limit != nil && f.limit.Status == rejected && (e.APIStatus == 429 || e.APIStatus == 0 && kind == "rate_limit")
	status := int(e.APIStatus)
	switch {
	case e.APIError == "usage_limit_reached" || limited || bad && limitText.MatchString(e.Result):
		return outcome{verdict: runner.Later, class: "usage-limit", reason: said, resetAt: resetAt(e, f, now)}
	case kind == "billing_error":
		return failed("credit", "%s", said)
	case status == 401 || status == 403 || status == 0 && kind == "authentication_failed":
		return outcome{verdict: runner.LoginLost, class: "auth", reason: said}
	case status == 402:
		return failed("budget", "%s", said)
	case status == 408 || status == 409 || status == 429 || status >= 500 || e.APIError == "connection_failed" || status == 0 && kind == "server_error":
		return outcome{verdict: runner.Later, class: "server", reason: said}
	case e.StopReason == "refusal":
		return failed("refusal", "%s", said)
	case kind == "max_output_tokens" || e.APIError == "max_output_tokens":
		return failed("max-output", "%s", said)
	case e.Terminal == "prompt_too_long":
		return failed("prompt-too-long", "%s", said)
	case kind == "model_not_found" || status == 404:
		return failed("model", "%s", said)
	case status >= 400:
		return failed("request", "%s", said)
	}
	if said == "" {
		said = fmt.Sprintf("the program reported %q without a word", oneLine(e.Subtype))
	}
	return failed("error", "%s", said)
}

// resetAt is when the usage limit ends: by the service's own figure, else by the program's sentence, else not known.
func resetAt(e *event, f facts, now time.Time) time.Time {
	if f.limit != nil && f.limit.Status == rejected && f.limit.ResetsAt > 0 {
		return f.limit.resetOf(now) // a figure of the past is no reason to believe a sentence that has no date
	}
	return parseReset(e.Result, now)
}

// ending is what was seen of a run as a whole.
type ending struct {
	last   *outcome // by the last result that was judged; nil: none came
	ended  bool     // the program had to be signalled
	exit   int      // its exit status
	limit  *limit
	stderr string // its last words there
}

// conclude weighs the program's end against the last result. What we stopped ourselves is not its business.
func conclude(e ending, now time.Time) outcome {
	if e.last != nil {
		if e.last.good() && !e.ended && e.exit != 0 {
			return failed("exit", "the answer was good, but the exit status is %d%s", e.exit, colon(e.stderr))
		}
		return *e.last
	}
	if e.limit != nil && e.limit.Status == rejected {
		return outcome{verdict: runner.Later, class: "usage-limit", reason: "the account's usage limit was reached", resetAt: e.limit.resetOf(now)}
	}
	switch {
	case !e.ended && (e.exit == -1 || e.exit == 128+9 || e.exit == 128+6):
		return failed("oom", "the program was killed or aborted, most often for want of memory (exit status %d)%s", e.exit, colon(e.stderr))
	case e.exit == 0 || e.ended:
		return failed("no-result", "the program ended without a result%s", colon(e.stderr))
	}
	return failed("no-result", "the program ended without a result, exit status %d%s", e.exit, colon(e.stderr))
}

func colon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}
