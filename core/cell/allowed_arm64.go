package cell

// older are the calls that only this architecture has: none.
func older() []uint32 { return nil }
