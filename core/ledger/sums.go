package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/money"
)

// The sums of a ledger are what its records up to some place come to, in a file of their own beside it. They let a
// process begin to read there: what it costs to decide about a run does not grow with the age of a mission. They are
// written under the lock by whoever has read all before, after the records are on the disk. They decide nothing: where
// they are missing, damaged, or do not belong to the ledger, all of it is read.

// sumsSuffix is put behind the name of the ledger.
const sumsSuffix = ".sums"

// sumEvery is how many bytes of new records new sums are written for.
const sumEvery = 64 << 10

// sumsVersion is the version of the sums that this program writes, and the only one that it reads.
const sumsVersion = 1

// errWhole says that a record before the sums is needed.
var errWhole = errors.New("a record before the sums is needed")

// sums are what the records before Offset come to.
type sums struct {
	Version  int                    `json:"v"`
	Offset   int64                  `json:"offset"`
	Line     int                    `json:"line"`
	Seq      int64                  `json:"seq"`
	Before   string                 `json:"before"` // hash of the bytes that end at Offset
	Budget   money.Amount           `json:"budget"`
	Nano     money.Nano             `json:"nano_usd"`
	Tokens   int64                  `json:"tokens"`
	Open     []Run                  `json:"open"`
	ByAgent  map[string]Sum         `json:"by_agent"`
	ByStep   map[string]Sum         `json:"by_step"`
	ByModel  map[string]money.Usage `json:"by_model"`
	Unpriced []string               `json:"unpriced"`
	Known    idSet                  `json:"known"` // all runs, roughly
}

// sumsFile is the file: the sums and their hash.
type sumsFile struct {
	Sums json.RawMessage `json:"sums"`
	Hash string          `json:"sha256"`
}

// fromSums is what the sums beside the ledger say, or an empty state if there are none to be used.
func (l *Ledger) fromSums(f *os.File, size int64) *past {
	empty := &past{runs: map[string]*run{}, open: map[string]*run{}}
	b, err := files.Read(l.path+sumsSuffix, 256<<20)
	if err != nil {
		return empty
	}
	var file sumsFile
	s := &sums{}
	if json.Unmarshal(b, &file) != nil || file.Hash != hashOf(file.Sums) || json.Unmarshal(file.Sums, s) != nil {
		return empty
	}
	if s.Version != sumsVersion || s.Offset <= 0 || s.Offset > size || s.Seq <= 0 || !s.Budget.Valid() {
		return empty
	}
	if before, err := before(f, s.Offset); err != nil || before != s.Before {
		return empty
	}
	p := &past{base: s, summed: s.Offset, offset: s.Offset, line: s.Line, seq: s.Seq, budget: s.Budget, nano: s.Nano, tokens: s.Tokens,
		runs: map[string]*run{}, open: map[string]*run{}}
	for _, r := range s.Open {
		e := &run{Run: r}
		p.runs[r.ID], p.open[r.ID] = e, e
	}
	return p
}

// writeSums writes new sums if enough was added since the last ones. The lock is held and the state is fresh. What goes
// wrong is nobody's loss.
func (l *Ledger) writeSums() {
	p := l.past
	if p.offset-p.summed < l.every || p.unended || len(p.torn) > 0 {
		return
	}
	known, room := p.known()
	if !room {
		if l.whole() != nil { // a larger set is made from all of them
			return
		}
		p = l.past
		known, _ = p.known()
	}
	f, err := os.Open(l.path)
	if err != nil {
		return
	}
	defer f.Close()
	b := p.book()
	s := sums{Version: sumsVersion, Offset: p.offset, Line: p.line, Seq: p.seq, Budget: b.Budget, Nano: b.Nano, Tokens: b.Tokens,
		Open: b.OpenRuns, ByAgent: b.ByAgent, ByStep: b.ByStep, ByModel: b.ByModel, Unpriced: b.Unpriced, Known: known}
	if s.Before, err = before(f, p.offset); err != nil {
		return
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return
	}
	data, err := json.Marshal(sumsFile{Sums: raw, Hash: hashOf(raw)})
	if err == nil && files.Replace(l.path+sumsSuffix, data, 0o600) == nil {
		p.summed = p.offset
	}
}

// find is a run by its id, nil if there is none. The error is errWhole where that is not known.
func (p *past) find(id string) (*run, error) {
	if e := p.runs[id]; e != nil {
		return e, nil
	}
	if p.base != nil && p.base.Known.has(id) {
		return nil, errWhole
	}
	return nil, nil
}

// known is the set of all runs. room is false if it cannot take all of them.
func (p *past) known() (set idSet, room bool) {
	if p.base == nil {
		set = newIDSet(len(p.runs))
	} else {
		set = idSet{N: p.base.Known.N, Bits: bytes.Clone(p.base.Known.Bits)}
	}
	for id := range p.runs {
		set.add(id)
	}
	return set, set.N*idBits <= len(set.Bits)*8
}

func before(f *os.File, offset int64) (string, error) {
	b := make([]byte, min(offset, 4096))
	if _, err := f.ReadAt(b, offset-int64(len(b))); err != nil {
		return "", err
	}
	return hashOf(b), nil
}

func hashOf(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// idSet is a set of ids that may take one for its member that is none, one in a hundred, and never the other way round
// (a Bloom filter).
type idSet struct {
	N    int    `json:"n"`
	Bits []byte `json:"bits"`
}

const (
	idBits   = 10 // of each id
	idHashes = 7
)

// newIDSet has room for twice as many as it will hold at first.
func newIDSet(n int) idSet { return idSet{Bits: make([]byte, max(1024, 2*n)*idBits/8)} }

func (s idSet) places(id string, each func(i uint64) bool) bool {
	if len(s.Bits) == 0 {
		return true
	}
	h := sha256.Sum256([]byte(id))
	a, b := binary.LittleEndian.Uint64(h[:8]), binary.LittleEndian.Uint64(h[8:16])
	for i := range uint64(idHashes) {
		if !each((a + i*b) % uint64(len(s.Bits)*8)) {
			return false
		}
	}
	return true
}

func (s *idSet) add(id string) {
	if s.has(id) {
		return
	}
	s.N++
	s.places(id, func(i uint64) bool { s.Bits[i/8] |= 1 << (i % 8); return true })
}

func (s idSet) has(id string) bool {
	return s.places(id, func(i uint64) bool { return s.Bits[i/8]&(1<<(i%8)) != 0 })
}
