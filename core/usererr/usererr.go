// Package usererr holds the errors that are meant for the person at the terminal: one sentence, a hint what to do,
// and an exit code that scripts, systemd and the supervisor read alike.
package usererr

import (
	"errors"
	"fmt"
)

// Code is a documented exit status. docs/exit-codes.md and every --help print the table that Codes returns.
type Code int

// The exit statuses. The numbers are a contract: they are never reused for something else.
const (
	OK          Code = 0   // done
	Failed      Code = 1   // it was tried and did not work; also a mission that failed
	Usage       Code = 2   // an argument, flag or draft is wrong; nothing was made
	NotFound    Code = 3   // there is no such mission, agent or run
	Environment Code = 4   // this machine lacks something: a program, a login, a permission
	Conflict    Code = 5   // it exists already, or is in use by somebody else
	Unreadable  Code = 6   // a state file cannot be read; it was kept, nothing was overwritten
	Spent       Code = 7   // the budget or the time is used up: the mission halted
	Aborted     Code = 8   // the mission was aborted
	Bug         Code = 70  // our own fault (EX_SOFTWARE of sysexits.h)
	Later       Code = 75  // try again later (EX_TEMPFAIL of sysexits.h); a tick that must wait
	DoNotRetry  Code = 125 // a tick that says: do not start me again
)

// Row is one line of the table of exit statuses.
type Row struct {
	Code    Code
	Meaning string
}

// Codes is the table of exit statuses in the order of the numbers.
func Codes() []Row {
	return []Row{
		{OK, "done; for start and run: the mission completed"},
		{Failed, "it was tried and did not work; for start and run: the mission failed"},
		{Usage, "an argument or flag is wrong; nothing was made or changed"},
		{NotFound, "no such mission, agent or run"},
		{Environment, "this machine lacks something: a program, a login, a permission"},
		{Conflict, "it exists already, or is in use"},
		{Unreadable, "a state file cannot be read; it was kept and nothing was overwritten"},
		{Spent, "the budget or the time is used up; the mission halted"},
		{Aborted, "the mission was aborted"},
		{Bug, "a fault of the program itself"},
		{Later, "try again later"},
		{DoNotRetry, "a tick that must not be started again"},
	}
}

// Error is an error for the user. Sentence has no capital initial and no full stop at its end.
type Error struct {
	Code     Code
	Sentence string
	Hint     string // what to do about it; may be empty
	Cause    error  // for logs; not printed when nil
}

// New makes an Error. hint may be empty.
func New(code Code, hint, format string, args ...any) *Error {
	return &Error{Code: code, Hint: hint, Sentence: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error around a cause, whose text follows the sentence.
func Wrap(cause error, code Code, hint, format string, args ...any) *Error {
	return &Error{Code: code, Hint: hint, Sentence: fmt.Sprintf(format, args...), Cause: cause}
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Sentence + ": " + e.Cause.Error()
	}
	return e.Sentence
}

func (e *Error) Unwrap() error { return e.Cause }

// CodeOf returns the exit status for err: OK for nil, Failed for an error that is not an Error, or is one that says OK.
// Of an Error and its cause the outer one counts; of errors that were joined the first, as the one that the others
// follow from. The hint of errors.As is that of the same one.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) && e.Code != OK {
		return e.Code
	}
	return Failed
}
