package claude

import "example.com/AutoAgentProject/core/money"

// least is the smaller of both, class by class.
func least(u, v money.Usage) money.Usage {
	return money.Usage{Input: min(u.Input, v.Input), Output: min(u.Output, v.Output),
		CacheWrite5m: min(u.CacheWrite5m, v.CacheWrite5m), CacheWrite1h: min(u.CacheWrite1h, v.CacheWrite1h),
		CacheRead: min(u.CacheRead, v.CacheRead), WebSearches: min(u.WebSearches, v.WebSearches)}
}

// less is u without v, no class below 0.
func less(u, v money.Usage) money.Usage {
	return money.Usage{Input: max(0, u.Input-v.Input), Output: max(0, u.Output-v.Output),
		CacheWrite5m: max(0, u.CacheWrite5m-v.CacheWrite5m), CacheWrite1h: max(0, u.CacheWrite1h-v.CacheWrite1h),
		CacheRead: max(0, u.CacheRead-v.CacheRead), WebSearches: max(0, u.WebSearches-v.WebSearches)}
}
