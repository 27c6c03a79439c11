// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package backtrack

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dlclark/regexp2/v2/syntax"
)

// Options change how a pattern is read.
type Options uint8

// The options of a pattern, as the letters i, m and s set them.
const (
	Caseless Options = 1 << iota
	Multiline
	DotAll
)

// Limits of a pattern: bytes of its text, instructions of its program, groups,
// and the number of a repetition.
const (
	MaxPattern = 4 << 10
	maxProgram = 20_000
	maxGroups  = 256
	maxRepeat  = math.MaxUint16 // as in PCRE
)

// maxText is how long a text may be.
const maxText = math.MaxInt32 - 1

// opcode is what an instruction does.
type opcode uint8

const (
	opFail  opcode = iota // go back to the last choice
	opDone                // the end of the program, or of a part of it
	opSet                 // one byte of set
	opRun                 // lo to hi bytes of set, as many as there are; with lazy as few as will do; with atomic none is given back
	opSplit               // try x, then y
	opJump                // to x

	opClose  // group x reaches from the place in register y to here
	opRef    // what group x matched
	opAssert // a condition of the place
	opLook   // what follows up to x-1 matches here, and no place is taken; with negate: it does not
	opAtomic // the first match of what follows up to x-1
	opMark   // remember the place in register x
	opMoved  // fail over to y when the place is that of register x: a repetition of nothing ends
	opTaken  // to y unless group x took part
)

// instruction is one step of a program.
type instruction struct {
	op                                 opcode
	back                               bool // reads the text before the place, in an assertion that looks behind
	lazy, atomic, negate, ignore, cond bool // cond: opLook goes to y instead of back
	at                                 place
	x, y                               int32
	lo, hi                             int32
	set                                int32
}

// place is a condition of opAssert.
type place uint8

const (
	atTextStart place = iota
	atLineStart
	atLineEnd
	atTextEnd // or before a line break that ends the text
	atVeryEnd
	atWord
	atNoWord
)

// byteSet says which bytes it has.
type byteSet [4]uint64

func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }
func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }

// Program is a compiled pattern. It may be run by several goroutines at once.
type Program struct {
	code      []instruction
	sets      []byteSet
	groups    int // with the whole match
	registers int
}

// Size is how many instructions the program has.
func (p *Program) Size() int { return len(p.code) }

// Compile makes the program of a pattern. Bytes from 128 on are written as the
// characters of their number. The error says what is wrong, or what even this
// package does not do.
func Compile(pattern string, o Options) (*Program, error) {
	if len(pattern) > MaxPattern {
		return nil, fmt.Errorf("the pattern has %d bytes, at most %d are taken", len(pattern), MaxPattern)
	}
	text, err := readable(pattern)
	if err != nil {
		return nil, err
	}
	options := syntax.RE2
	for bit, as := range map[Options]syntax.RegexOptions{Caseless: syntax.IgnoreCase, Multiline: syntax.Multiline, DotAll: syntax.Singleline} {
		if o&bit != 0 {
			options |= as
		}
	}
	tree, err := parse(text, options)
	if err != nil {
		return nil, err
	}
	if tree.Captop > maxGroups {
		return nil, fmt.Errorf("the pattern has more than %d groups", maxGroups)
	}
	c := &compiler{
		p: &Program{groups: max(1, tree.Captop)}, setAt: map[byteSet]int32{},
		setOfNode: map[*syntax.RegexNode]int32{}, nodeOfGroup: map[int]*syntax.RegexNode{},
	}
	c.node(tree.Root)
	c.emit(instruction{op: opDone})
	if c.err != nil {
		return nil, c.err
	}
	return c.p, nil
}

// parse keeps a defect of the parser from ending the program: patterns come
// from the network, too.
func parse(pattern string, options syntax.RegexOptions) (tree *syntax.RegexTree, err error) {
	defer func() {
		if r := recover(); r != nil {
			tree, err = nil, fmt.Errorf("the pattern cannot be read: %v", r)
		}
	}()
	return syntax.Parse(pattern, syntax.ParseOptions{RegexOptions: options, MaintainCaptureOrder: true})
}

// readable returns the text of a pattern as the parser reads it right. It refuses
// what the parser accepts and PCRE reads otherwise or refuses: letters of (?...)
// that mean something else, and a condition that is no assertion and no group.
func readable(pattern string) (string, error) {
	var insert []insertion
	var open []int // where the content of each group around begins
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\':
			i++
		case pattern[i] == '[':
			i = classEnd(pattern, i)
		case strings.HasPrefix(pattern[i:], "(?("):
			n, err := condition(pattern, pattern[i+len("(?("):])
			if err != nil {
				return "", err
			}
			open = append(open, -1)
			i += len("(?(") - 1
			if n > 0 {
				open = append(open, -1)
				i += n
				insert = append(insert, insertion{i + 1, noNumber})
			} else {
				i = strings.IndexByte(pattern[i:], ')') + i
			}
		case strings.HasPrefix(pattern[i:], "(?"):
			if err := options(pattern[i+len("(?"):]); err != nil {
				return "", err
			}
			open = append(open, contentOf(pattern, i))
			i++
		case pattern[i] == '(':
			open = append(open, -1)
		case pattern[i] == ')' && len(open) > 0:
			begin := open[len(open)-1]
			open = open[:len(open)-1]
			if begin >= 0 && i+1 < len(pattern) && strings.IndexByte("*+?{", pattern[i+1]) >= 0 {
				insert = append(insert, insertion{begin, apart})
			}
		}
	}
	if len(insert) == 0 {
		return pattern, nil
	}
	slices.SortStableFunc(insert, func(x, y insertion) int { return cmp.Compare(x.at, y.at) })
	var out strings.Builder
	done := 0
	for _, n := range insert {
		out.WriteString(pattern[done:n.at] + n.text)
		done = n.at
	}
	return out.String() + pattern[done:], nil
}

// insertion is a text that changes nothing but how the parser reads what is around.
type insertion struct {
	at   int
	text string
}

const (
	// The parser does not number the first group behind a condition that is an
	// assertion. It gets one here that has no number anyway.
	noNumber = "(?n:())"
	// The parser makes one repetition of a repetition and what it repeats, also
	// where that gives nothing back. It leaves them apart when there is something
	// else beside the inner one, as this that is never there.
	apart = `(?!\b\B)`
)

// contentOf returns where the content of the group at i begins, (?: or (?> or one
// with options, and -1 for any other.
func contentOf(pattern string, i int) int {
	i += len("(?")
	for i < len(pattern) && strings.IndexByte("imsx-", pattern[i]) >= 0 {
		i++
	}
	if i < len(pattern) && (pattern[i] == ':' || pattern[i] == '>') {
		return i + 1
	}
	return -1
}

// classEnd returns where the class that begins at i ends, the end of the pattern
// if it does not.
func classEnd(pattern string, i int) int {
	i++
	if i < len(pattern) && pattern[i] == '^' {
		i++
	}
	for first := true; i < len(pattern); i, first = i+1, false {
		switch {
		case pattern[i] == '\\':
			i++
		case pattern[i] == ']' && !first:
			return i
		case strings.HasPrefix(pattern[i:], "[:"):
			if end := strings.Index(pattern[i:], ":]"); end > 0 {
				i += end + 1
			}
		}
	}
	return i
}

// options looks at what follows (? up to what is no letter of an option.
func options(rest string) error {
	for k := range len(rest) {
		switch c := rest[k]; {
		case c == 'x' && k > 0 && rest[k-1] == 'x':
			return errors.New("the option xx is not supported")
		case strings.IndexByte("imsx-", c) >= 0:
			continue
		case c == 'P' && k == 0:
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			return fmt.Errorf("the option %q is not supported", c)
		}
		break
	}
	return nil
}

// condition looks at what follows (?(, and returns how long the beginning of an
// assertion is there, 0 for a group. For the parser any pattern may stand there.
func condition(pattern, rest string) (int, error) {
	for _, look := range []string{"?=", "?!", "?<=", "?<!"} {
		if strings.HasPrefix(rest, look) {
			return len(look), nil
		}
	}
	name, _, _ := strings.Cut(rest, ")")
	if _, err := strconv.ParseUint(name, 10, 16); err == nil {
		return 0, nil // the parser knows which groups there are
	}
	for _, begin := range []string{"(?<", "(?P<"} {
		if name != "" && strings.Contains(pattern, begin+name+">") {
			return 0, nil
		}
	}
	return 0, errors.New("the condition is neither an assertion nor a group")
}

// errTooLarge ends the compilation of a pattern whose repetitions, written
// out, are too many.
var errTooLarge = errors.New("the pattern is too large with its repetitions written out")

// compiler makes a program of a tree. After the first error it emits nothing.
type compiler struct {
	p     *Program
	setAt map[byteSet]int32
	// A repetition that is written out has the same nodes several times.
	setOfNode   map[*syntax.RegexNode]int32
	nodeOfGroup map[int]*syntax.RegexNode
	behind      map[int]bool // the groups of the assertions around that look behind
	repeated    int          // how many repetitions are around, within the assertion
	err         error
}

// emit appends an instruction and returns where it stands.
func (c *compiler) emit(i instruction) int32 {
	if c.err == nil && len(c.p.code) >= maxProgram {
		c.err = errTooLarge
	}
	if c.err != nil {
		return 0
	}
	c.p.code = append(c.p.code, i)
	return int32(len(c.p.code) - 1)
}

// here is where the next instruction will stand.
func (c *compiler) here() int32 { return int32(len(c.p.code)) }

// at returns an instruction to be completed.
func (c *compiler) at(i int32) *instruction {
	if c.err != nil {
		return &instruction{}
	}
	return &c.p.code[i]
}

func (c *compiler) register() int32 {
	c.p.registers++
	return int32(c.p.registers - 1)
}

// set returns the number of a set of bytes.
func (c *compiler) set(s byteSet) int32 {
	n, ok := c.setAt[s]
	if !ok {
		n = int32(len(c.p.sets))
		c.p.sets = append(c.p.sets, s)
		c.setAt[s] = n
	}
	return n
}

// setOf returns the bytes that a node for one character takes.
func (c *compiler) setOf(n *syntax.RegexNode) int32 {
	set, ok := c.setOfNode[n]
	if !ok {
		set = c.set(bytesOf(n))
		c.setOfNode[n] = set
	}
	return set
}

func bytesOf(n *syntax.RegexNode) (s byteSet) {
	for b := range 256 {
		r := rune(b)
		var in bool
		switch {
		case n.IsOneFamily():
			in = r == n.Ch || n.Options&syntax.IgnoreCase != 0 && fold(byte(b)) == foldRune(n.Ch)
		case n.IsNotoneFamily():
			in = r != n.Ch
		default:
			in = n.Set.CharIn(r)
		}
		if in {
			s.add(byte(b))
		}
	}
	return s
}

// fold is a byte without regard to case: of letters of ASCII, as in HTCondor.
func fold(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		b += 'a' - 'A'
	}
	return b
}

func foldRune(r rune) byte {
	if r > math.MaxUint8 {
		return 0
	}
	return fold(byte(r))
}
