// Package bridge is the place of the read-only dashboard. It has no pages yet; what it will show are the structs of
// core/view, which AutoAgentProject status --json prints today.
package bridge

import "example.com/AutoAgentProject/core/usererr"

// Serve will answer GET and HEAD; this version refuses.
func Serve() error {
	return usererr.New(usererr.DoNotRetry, "AutoAgentProject status and logs -f show the same", "this version has no dashboard yet")
}
