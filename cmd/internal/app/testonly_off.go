//go:build !testonly

package app

// testOnlyVariables are passed on to ticks by builds with the tag testonly.
var testOnlyVariables []string
