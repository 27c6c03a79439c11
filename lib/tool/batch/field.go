// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/execpoint/execpoint/lib/tool/match"
)

// textField decides between a field and its form in base64.
func textField(name string, plain, b64 *string) (text string, ok bool, err error) {
	if b64 == nil {
		if plain == nil {
			return "", false, nil
		}
		return *plain, true, nil
	}
	b, err := base64.StdEncoding.DecodeString(*b64)
	if err != nil {
		return "", false, fmt.Errorf("%s_b64: %w", name, err)
	}
	return string(b), true, nil
}

// appendField appends ,"name":"text"; a text that is no valid UTF-8 stands in
// base64 under the name with _b64 added.
func appendField(b []byte, name, text string) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	if !utf8.ValidString(text) {
		b = append(b, `_b64":"`...)
		b = base64.StdEncoding.AppendEncode(b, []byte(text))
		return append(b, '"')
	}
	b = append(b, `":`...)
	return appendJSONString(b, text)
}

// appendTyped appends ,"name":{"type":…,"value":…}.
func appendTyped(b []byte, name string, v match.Typed) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, `":{"type":`...)
	b = appendJSONString(b, v.Type)
	b = appendField(b, "value", v.Value)
	return append(b, '}')
}

// appendBool appends ,"name":true or false.
func appendBool(b []byte, name string, v bool) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, `":`...)
	return strconv.AppendBool(b, v)
}

// appendNames appends ,"name":["…",…]. If one of them is no valid UTF-8 all
// are in base64, and the name has _b64 added.
func appendNames(b []byte, name string, list []string) []byte {
	encode := false
	for _, s := range list {
		encode = encode || !utf8.ValidString(s)
	}
	b = append(b, ',', '"')
	b = append(b, name...)
	if encode {
		b = append(b, "_b64"...)
	}
	b = append(b, `":[`...)
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if encode {
			s = base64.StdEncoding.EncodeToString([]byte(s))
		}
		b = appendJSONString(b, s)
	}
	return append(b, ']')
}

// appendJSONString appends a string that is valid UTF-8 as the recordings
// write it: only quotes, backslashes and control characters are escaped.
func appendJSONString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
