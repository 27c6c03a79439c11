// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package backtrack

// machine runs a program at one place of a text after the other.
type machine struct {
	p         *Program
	text      string
	groups    []int // begin and end of each group, -1 for one that took no part
	registers []int
	stack     []entry
	steps     int
}

// entry is what a way that fails goes back to.
type entry struct {
	kind     entryKind
	pc       int32
	pos, old int32
}

type entryKind uint8

const (
	choice      entryKind = iota // go on at pc with pos
	longer                       // the run of pc may give back down to old
	shorter                      // the run of pc may take more, old bytes at most
	oldGroup                     // groups[pos] was old
	oldRegister                  // registers[pos] was old
)

// Find returns the first match in text that begins at from or later: the
// offsets of its begin and end, and of each group's, -1 for a group that took
// no part; nil when there is none. What stands before from is seen by
// assertions. It takes what it uses from steps, about one for an instruction
// or a byte, and reports false when they do not last. It keeps 16 bytes for a step
// at most.
func (p *Program) Find(text string, from int, steps *int) (loc []int, ok bool) {
	if len(text) > maxText {
		return nil, false
	}
	m := machine{p: p, text: text, steps: *steps - p.groups - p.registers, groups: make([]int, 2*p.groups), registers: make([]int, p.registers)}
	for i := range m.groups {
		m.groups[i] = -1
	}
	for start := from; start <= len(text) && m.steps >= 0; start++ {
		if _, ok := m.run(0, start); ok {
			loc = m.groups
			break
		}
	}
	*steps = m.steps
	return loc, m.steps >= 0
}

// run carries out the instructions from pc on until opDone, and returns the
// place that is reached. When they fail everything is as it was before. When
// they do not, the choices that are left are given up.
func (m *machine) run(pc int32, pos int) (end int, ok bool) {
	base := len(m.stack)
	for {
		m.steps--
		if m.steps < 0 {
			return 0, false
		}
		i := &m.p.code[pc]
		holds := true
		switch i.op {
		case opDone:
			m.commit(base)
			return pos, true
		case opFail:
			holds = false
		case opSet:
			pos, holds = m.one(i, pos)
		case opRun:
			pos, holds = m.repeat(i, pc, pos)
		case opSplit:
			m.push(choice, i.y, pos, 0)
			pc = i.x
			continue
		case opJump:
			pc = i.x
			continue
		case opMark:
			m.setRegister(i.x, pos)
		case opMoved:
			if m.registers[i.x] == pos {
				pc = i.y
				continue
			}
		case opClose:
			m.steps-- // for the second entry of the stack: no step makes more than one
			begin := m.registers[i.y]
			m.setGroup(2*i.x, min(begin, pos))
			m.setGroup(2*i.x+1, max(begin, pos))
		case opRef:
			pos, holds = m.reference(i, pos)
		case opTaken:
			if m.groups[2*i.x] < 0 {
				pc = i.y
				continue
			}
		case opAssert:
			holds = m.is(i.at, pos)
		case opLook:
			holds = m.look(pc+1, pos) != i.negate
			if m.steps < 0 {
				return 0, false
			}
			if !holds && i.cond {
				pc = i.y
				continue
			}
			if holds {
				pc = i.x
				continue
			}
		case opAtomic:
			if pos, holds = m.run(pc+1, pos); holds {
				pc = i.x
				continue
			}
		}
		if holds {
			pc++
			continue
		}
		if pc, pos, ok = m.goBack(base); !ok {
			return 0, false
		}
	}
}

// look reports whether the part from pc on matches at pos. What it matched in
// groups stays, unless it fails.
func (m *machine) look(pc int32, pos int) bool {
	base := len(m.stack)
	_, ok := m.run(pc, pos)
	if ok && m.p.code[pc-1].negate {
		m.undo(base)
	}
	return ok
}

// commit gives the choices above base up and keeps what undoes assignments,
// for a way back further down. Each part around this one moves those once more,
// which is work of its own.
func (m *machine) commit(base int) {
	kept := m.stack[:base]
	for _, e := range m.stack[base:] {
		if e.kind == oldGroup || e.kind == oldRegister {
			kept = append(kept, e)
		}
	}
	m.stack = kept
	m.steps -= len(kept) - base
}

// undo takes assignments above base back.
func (m *machine) undo(base int) {
	for len(m.stack) > base {
		m.restore(m.pop())
	}
}

// push puts an entry on the stack. All its numbers are places of a text, or
// smaller.
func (m *machine) push(kind entryKind, pc int32, pos, old int) {
	m.stack = append(m.stack, entry{kind: kind, pc: pc, pos: int32(pos), old: int32(old)})
}

func (m *machine) pop() entry {
	e := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	m.steps--
	return e
}

func (m *machine) restore(e entry) {
	switch e.kind {
	case oldGroup:
		m.groups[e.pos] = int(e.old)
	case oldRegister:
		m.registers[e.pos] = int(e.old)
	}
}

// goBack returns where to go on after a failure, ok false when no choice is
// left above base.
func (m *machine) goBack(base int) (pc int32, pos int, ok bool) {
	for len(m.stack) > base {
		e := m.pop()
		switch e.kind {
		case choice:
			return e.pc, int(e.pos), true
		case longer:
			// Down to the least that it may be, one byte at a time.
			pos, least := int(e.pos)-m.direction(e.pc), int(e.old)
			if pos != least {
				m.push(longer, e.pc, pos, least)
			}
			return e.pc + 1, pos, true
		case shorter:
			pos, ok := m.one(&m.p.code[e.pc], int(e.pos))
			if !ok {
				continue
			}
			if most := int(e.old); most > 1 {
				m.push(shorter, e.pc, pos, most-1)
			}
			return e.pc + 1, pos, true
		default:
			m.restore(e)
		}
	}
	return 0, 0, false
}

func (m *machine) direction(pc int32) int {
	if m.p.code[pc].back {
		return -1
	}
	return 1
}

func (m *machine) setGroup(n int32, pos int) {
	m.push(oldGroup, 0, int(n), m.groups[n])
	m.groups[n] = pos
}

func (m *machine) setRegister(n int32, pos int) {
	m.push(oldRegister, 0, int(n), m.registers[n])
	m.registers[n] = pos
}

// one takes a byte of the instruction's set.
func (m *machine) one(i *instruction, pos int) (int, bool) {
	if i.back {
		if pos == 0 || !m.p.sets[i.set].has(m.text[pos-1]) {
			return pos, false
		}
		return pos - 1, true
	}
	if pos == len(m.text) || !m.p.sets[i.set].has(m.text[pos]) {
		return pos, false
	}
	return pos + 1, true
}

// repeat takes a run of bytes, and leaves the choice of another length.
func (m *machine) repeat(i *instruction, pc int32, pos int) (int, bool) {
	most, begin, short := i.hi, pos, false
	if i.lazy {
		most = i.lo
	}
	least := pos
	for n := range most {
		if n == i.lo {
			least = pos
		}
		next, ok := m.one(i, pos)
		if !ok {
			short = n < i.lo
			break
		}
		pos = next
	}
	if most == i.lo {
		least = pos
	}
	m.steps -= max(pos-begin, begin-pos) // also of a run that is too short
	switch {
	case short:
		return pos, false
	case i.atomic:
	case i.lazy:
		if i.hi > i.lo {
			m.push(shorter, pc, pos, int(i.hi-i.lo))
		}
	case pos != least:
		m.push(longer, pc, pos, least)
	}
	return pos, true
}

// reference takes once more what a group matched. A group that took no part
// matches nothing, and no nothing either.
func (m *machine) reference(i *instruction, pos int) (int, bool) {
	begin, end := m.groups[2*i.x], m.groups[2*i.x+1]
	if begin < 0 {
		return pos, false
	}
	n := end - begin
	m.steps -= n
	from, to := pos, pos+n
	if i.back {
		from, to = pos-n, pos
	}
	if from < 0 || to > len(m.text) {
		return pos, false
	}
	for k := range n {
		a, b := m.text[begin+k], m.text[from+k]
		if a != b && !(i.ignore && fold(a) == fold(b)) {
			return pos, false
		}
	}
	if i.back {
		return from, true
	}
	return to, true
}

// is reports whether pos is such a place.
func (m *machine) is(at place, pos int) bool {
	end := len(m.text)
	switch at {
	case atTextStart:
		return pos == 0
	case atLineStart:
		// Not behind a line break that ends the text.
		return pos == 0 || m.text[pos-1] == '\n' && pos < end
	case atLineEnd:
		return pos == end || m.text[pos] == '\n'
	case atTextEnd:
		return pos == end || pos == end-1 && m.text[pos] == '\n'
	case atVeryEnd:
		return pos == end
	}
	word := (pos > 0 && isWord(m.text[pos-1])) != (pos < end && isWord(m.text[pos]))
	return word == (at == atWord)
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}
