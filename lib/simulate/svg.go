// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"github.com/execpoint/execpoint/lib/policy"
)

// The measures of the picture, in its own units.
const (
	svgLeft   = 110
	svgWidth  = 900 // of the time axis
	svgRow    = 22
	svgBar    = 16
	svgTop    = 40
	svgBottom = 60
)

// colours are those of the pairs, by the letter of the picture for a terminal.
var colours = map[byte]string{
	'o': "#8c6bb1", '.': "#e0e0e0", 'm': "#c7e9b4", 'c': "#a6bddb", '#': "#2b8cbe", 's': "#fec44f", 'r': "#fe9929", 'v': "#ec7014",
	'k': "#b30000", 'd': "#525252", 'f': "#78c679",
}

// legend are the words for the letters, in the order of the picture.
var legend = []struct {
	mark byte
	text string
}{
	{'o', "Owner"}, {'.', "Unclaimed"}, {'c', "Claimed/Idle"}, {'#', "Busy"}, {'s', "Suspended"}, {'r', "Retiring"}, {'v', "Vacating"},
	{'k', "Killing"}, {'d', "Drained"}, {'f', "Backfill"},
}

// WriteSVG draws what each slot did, a row for each, over a common axis of
// time. Spans shorter than a pixel are widened to one, so that none is unseen.
func (r *Result) WriteSVG(w io.Writer) error {
	lanes := r.Lanes()
	shown := lanes[:min(len(lanes), maxLanes)]
	height := svgTop + svgRow*len(shown) + svgBottom
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", svgLeft+svgWidth+20, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n"+`<text x="10" y="20" font-size="14">%s</text>`+"\n", escaped(r.Name))
	x := func(d time.Duration) float64 { return svgLeft + svgWidth*float64(d)/float64(r.End) }
	step := tick(r.End)
	for at := time.Duration(0); at <= r.End; at += step {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#cccccc"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			x(at), svgTop-6, x(at), height-svgBottom, x(at), height-svgBottom+15, spanText(at))
	}
	for i, l := range shown {
		y := svgTop + svgRow*i
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", svgLeft-8, y+12, escaped(l.Slot))
		for _, s := range l.Spans {
			title := fmt.Sprintf("%v from %s to %s", s.Pair, clockText(s.From), clockText(s.To))
			if s.Job != "" && s.Pair.State != policy.Unclaimed {
				title += ", job " + s.Job
			}
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s</title></rect>`+"\n",
				x(s.From), y, max(1, x(s.To)-x(s.From)), svgBar, colours[mark(s.Pair)], escaped(title))
		}
	}
	for i, e := range legend {
		left := 10 + i*100
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			left, height-25, colours[e.mark], left+16, height-15, e.text)
	}
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

func escaped(s string) string {
	var b bytes.Buffer
	// A bytes.Buffer takes everything.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// tick is a round span of which about ten make the whole.
func tick(whole time.Duration) time.Duration {
	for _, t := range []time.Duration{
		time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
		2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
	} {
		if whole/t <= 12 {
			return t
		}
	}
	return 30 * 24 * time.Hour
}
