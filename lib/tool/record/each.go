// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/execpoint/execpoint/lib/tool/batch"
	"github.com/execpoint/execpoint/lib/tool/words"
)

// each answers every line that is not blank, and counts those that could not be
// answered: too long ones, of which refused makes the answer, and those of which answer
// returns an error.
func each(in io.Reader, out io.Writer, limit int, answer func(line []byte) (any, error), refused func(why string) any) (unanswered int, err error) {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err = batch.EachLine(in, limit, func(_ int, line []byte, long bool) error {
		if long {
			unanswered++
			return enc.Encode(refused("longer than " + words.Size(int64(limit))))
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return nil
		}
		a, err := answer(line)
		if err != nil {
			unanswered++
		}
		return enc.Encode(a)
	})
	return unanswered, err
}

// notARecord words what is wrong with a line that is no JSON.
func notARecord(err error) string { return "not a record: " + err.Error() }
