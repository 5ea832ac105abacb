package gateway

import (
	"crypto/sha256"
	"sync"
)

// mark names the beginning of a conversation up to some block.
type mark = [sha256.Size]byte

// prompt is what a request sends, as far as its size goes.
type prompt struct {
	whole int64   // tokens at most, by its bytes
	marks []mark  // after each block of its messages
	sizes []int64 // tokens of each block at most
	learn bool    // what the service counts for it bounds its part of later prompts
}

// known remembers what the service counted for the prompts of this run.
type known struct {
	mu     sync.Mutex
	counts map[mark]int64
}

// bound is the most tokens that a prompt can have: what the service counted for the longest beginning of it that was
// sent before, and one token for each byte since.
func (k *known) bound(p prompt) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	added := int64(0)
	for i := len(p.marks) - 1; i >= 0; i-- {
		if n, ok := k.counts[p.marks[i]]; ok {
			return min(n+added, p.whole)
		}
		added += p.sizes[i]
	}
	return p.whole
}

// learn takes in what the service counted.
func (k *known) learn(p prompt, tokens int64) {
	if !p.learn || len(p.marks) == 0 || tokens <= 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	last := p.marks[len(p.marks)-1]
	if k.counts == nil {
		k.counts = map[mark]int64{}
	}
	k.counts[last] = max(k.counts[last], tokens)
}
