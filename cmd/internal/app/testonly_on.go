//go:build testonly

package app

var testOnlyVariables = []string{"AUTOAGENT_TESTONLY_KILL", "AUTOAGENT_TESTONLY_FAIL", "AUTOAGENT_TESTONLY_STEPS"}
