// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// The bounds of what is believed of one program's output.
const (
	maxLine  = 64 << 10  // bytes of one line
	maxBlock = 256 << 10 // bytes of the lines of one ad
	maxBad   = 20        // bad lines told of one run
	maxShown = 80        // bytes of a bad line that are shown
	maxTag   = 200       // bytes of a tag
)

// Update says what a separator line asks for.
type Update uint8

// The wishes of "update:".
const (
	Unsaid    Update = iota // AutoPublish decides
	UpdateNow               // update or update:true
	NoUpdate                // update:false
)

// Block is one ad that a job printed, ended by a separator or by its exit.
type Block struct {
	Tag    string // the word after the separator; blocks of one tag replace each other
	Update Update
	Ad     *classad.Ad // the receiver's; LastUpdate is not in it yet
}

// BadLine is a line of output that was left out.
type BadLine struct {
	Number int    // from 1
	Text   string // its beginning
	Err    error
}

// Error says which line and why.
func (b BadLine) Error() string { return fmt.Sprintf("line %d: %v: %q", b.Number, b.Err, b.Text) }

// Unwrap returns the cause.
func (b BadLine) Unwrap() error { return b.Err }

// Parser reads the output of one run: lines "Name = expression", each ad ended
// by a line that starts with "-", after which a tag and "update:bool" may
// stand. The prefix goes before each name. Output may come in pieces of any
// size. The zero Parser has no prefix.
type Parser struct {
	Prefix string

	// Bad are the first bad lines, More how many came after.
	Bad  []BadLine
	More int

	line    []byte // the beginning of a line that has not ended
	long    bool   // that line is too long; the rest is skipped
	number  int
	ad      *classad.Ad
	size    int
	full    bool // the ad is too large and is skipped up to the separator
	refused error
}

// Refused is not nil once the output turned out to be no text. Nothing more is
// read then; blocks that were complete before stay good.
func (p *Parser) Refused() error { return p.refused }

// Feed takes the next piece of output and returns the blocks that it ended.
func (p *Parser) Feed(piece []byte) []Block {
	var out []Block
	for len(piece) > 0 && p.refused == nil {
		part, rest, ended := bytes.Cut(piece, []byte{'\n'})
		piece = rest
		if room := maxLine - len(p.line); len(part) > room {
			part, p.long = part[:room], true
		}
		p.line = append(p.line, part...)
		if ended {
			out = p.endLine(out)
		}
	}
	return out
}

// End takes the end of the output: a last line without a line end, and a last
// ad without a separator.
func (p *Parser) End() []Block {
	var out []Block
	if p.refused == nil && (len(p.line) > 0 || p.long) {
		out = p.endLine(out)
	}
	if p.refused == nil {
		out = p.separator(out, "")
	}
	return out
}

func (p *Parser) endLine(out []Block) []Block {
	p.number++
	line, long := strings.TrimSuffix(string(p.line), "\r"), p.long
	p.line, p.long = p.line[:0], false
	switch {
	case strings.IndexByte(line, 0) >= 0:
		p.ad = nil
		p.refused = errs.E("hook.Parse", errs.Invalid, "", fmt.Errorf("line %d holds a NUL byte: the output is not text and is not read further", p.number))
	case strings.HasPrefix(line, "-"):
		return p.separator(out, line[1:])
	case strings.TrimSpace(line) == "" && !long:
	case long:
		p.bad(line, fmt.Errorf("longer than %d bytes", maxLine))
	case p.full:
	case p.size+len(line) > maxBlock:
		p.full = true
		p.bad(line, fmt.Errorf("the ad is larger than %d bytes and is left out", maxBlock))
	default:
		if p.ad == nil {
			p.ad = classad.NewAd()
		}
		if err := insert(p.ad, p.Prefix, line); err != nil {
			p.bad(line, err)
			break
		}
		p.size += len(line)
	}
	return out
}

// separator ends an ad. One without a single attribute is no ad.
func (p *Parser) separator(out []Block, words string) []Block {
	ad, full := p.ad, p.full
	p.ad, p.size, p.full = nil, 0, false
	if ad == nil || ad.Len() == 0 || full {
		return out
	}
	b := Block{Ad: ad}
	for i, word := range strings.Fields(words) {
		name, value, valued := strings.Cut(word, ":")
		switch {
		case i == 0 && !valued && len(word) > maxTag:
			p.bad("-"+words, fmt.Errorf("a tag longer than %d bytes; the ad is left out", maxTag))
			return out
		case i == 0 && !valued:
			b.Tag = word
		case strings.EqualFold(name, "update"):
			b.Update = UpdateNow
			if value == "" {
				break
			}
			if e, err := classad.ParseExpr(value, classad.Old); err == nil {
				if v := e.Eval(&classad.Env{My: ad}); v.Kind() == classad.KindBoolean || v.Kind() == classad.KindInteger {
					if !v.IsTrue() {
						b.Update = NoUpdate
					}
					break
				}
			}
			p.bad("-"+words, fmt.Errorf("update: is followed by true or false"))
		}
	}
	return append(out, b)
}

func (p *Parser) bad(line string, err error) {
	if len(p.Bad) == maxBad {
		p.More++
		return
	}
	p.Bad = append(p.Bad, BadLine{Number: p.number, Text: shorten(line), Err: err})
}

func shorten(line string) string {
	if len(line) > maxShown {
		line = strings.ToValidUTF8(line[:maxShown], "") + "…"
	}
	return line
}

// insert reads "Name = expression" into ad.
func insert(ad *classad.Ad, prefix, line string) error {
	name, text, found := strings.Cut(line, "=")
	name = prefix + strings.TrimSpace(name)
	text = strings.TrimSpace(text)
	switch {
	case !found:
		return fmt.Errorf("not of the form Name = expression")
	case !attrName(name):
		return fmt.Errorf("not the name of an attribute")
	case text == "":
		return fmt.Errorf("no expression behind the =")
	case !utf8.ValidString(text):
		return fmt.Errorf("not UTF-8")
	}
	return ad.SetText(name, text)
}

// attrName reports whether s can be the name of an attribute as written.
func attrName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
