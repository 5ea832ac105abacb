package notify

import (
	"fmt"
	"strconv"
	"strings"

	"example.com/AutoAgentProject/core/mission"
)

// MaxData is how many bytes the data of a button may have.
const MaxData = 64

// Press is what the data of a button says.
type Press struct {
	What    string // "ap": answers an approval; "ab": answers whether to abort
	Mission string
	N       int    // of the approval
	Answer  string // "y", "n", or "s": skip
	Token   string
}

// Data is the press as a button carries it: what, mission, number, answer, token. 64 bytes hold the longest id.
func (p Press) Data() string {
	return fmt.Sprintf("%s:%s:%d:%s:%s", p.What, p.Mission, p.N, p.Answer, p.Token)
}

// ParsePress reads the data of a button.
func ParsePress(data string) (p Press, ok bool) {
	f := strings.Split(data, ":")
	if len(data) > MaxData || len(f) != 5 || f[0] != "ap" && f[0] != "ab" || mission.CheckID(f[1]) != nil || f[3] != "y" && f[3] != "n" && (f[3] != "s" || f[0] != "ap") || f[4] == "" {
		return p, false
	}
	n, err := strconv.Atoi(f[2])
	if err != nil || n < 0 || strconv.Itoa(n) != f[2] || (f[0] == "ap") != (n > 0) {
		return p, false
	}
	return Press{f[0], f[1], n, f[3], f[4]}, true
}

// ApprovalButtons are those below an approval, one for each answer.
func ApprovalButtons(id string, a mission.Approval) (out []Button) {
	for _, c := range a.Choices() {
		answer := map[mission.Verdict]string{mission.Approved: "y", mission.Rejected: "n", mission.Skipped: "s"}[c.Verdict]
		out = append(out, Button{c.Word, Press{"ap", id, a.N, answer, a.Token()}.Data()})
	}
	return out
}

// AbortButtons are the two below the question whether to abort.
func AbortButtons(id, token string) []Button {
	return []Button{{"Abort " + id, Press{"ab", id, 0, "y", token}.Data()}, {"Keep it", Press{"ab", id, 0, "n", token}.Data()}}
}

// ApprovalRow is the beginning of the name of every row that asks for an approval.
func ApprovalRow(n int) string { return fmt.Sprintf("approval-%04d", n) }
