// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// Method is one way to authenticate: the bit that stands for it in a mask.
type Method uint32

// The methods that the protocol knows. Those of Supported work here.
const (
	None      Method = 0
	ClaimToBe Method = 2
	FS        Method = 4
	FSRemote  Method = 8
	NTSSPI    Method = 16
	GSI       Method = 32
	Kerberos  Method = 64
	Anonymous Method = 128
	SSL       Method = 256
	Password  Method = 512
	Munge     Method = 1024
	Token     Method = 2048
	SciTokens Method = 4096
)

// String returns the name of m in lists of methods, as in a policy ad or a
// knob; "NONE" for no method.
func (m Method) String() string {
	switch m {
	case None:
		return "NONE"
	case ClaimToBe:
		return "CLAIMTOBE"
	case FS:
		return "FS"
	case FSRemote:
		return "FS_REMOTE"
	case NTSSPI:
		return "NTSSPI"
	case GSI:
		return "GSI"
	case Kerberos:
		return "KERBEROS"
	case Anonymous:
		return "ANONYMOUS"
	case SSL:
		return "SSL"
	case Password:
		return "PASSWORD"
	case Munge:
		return "MUNGE"
	case Token:
		return "TOKEN"
	case SciTokens:
		return "SCITOKENS"
	}
	return "unknown method"
}

// Recorded returns the name under which a session and the map file know the
// method: that of the list, but IDTOKENS for TOKEN.
func (m Method) Recorded() string {
	if m == Token {
		return "IDTOKENS"
	}
	return m.String()
}

// Supported reports whether this program can authenticate with m. Whether it
// can here and now, with a token or certificate at hand, is another question:
// see Client.Offer and Server.Offer.
func (m Method) Supported() bool {
	switch m {
	case ClaimToBe, FS, Anonymous, SSL, Password, Token:
		return true
	}
	return false
}

// unsupported is the error if no method of a list can be run.
func unsupported(methods []Method) error {
	if len(methods) == 0 {
		return errs.E("", errs.Denied, "", errors.New("there is no method to try"))
	}
	return errs.E("", errs.Unsupported, "", fmt.Errorf("none of the methods %s is supported, want FS, TOKEN, PASSWORD, SSL, CLAIMTOBE or ANONYMOUS", FormatMethods(methods)))
}

// ParseMethod reads the name of one method, in any case.
func ParseMethod(name string) (Method, bool) {
	switch strings.ToUpper(name) {
	case "TOKENS", "IDTOKEN", "IDTOKENS":
		return Token, true
	case "SCITOKEN":
		return SciTokens, true
	}
	for bit := ClaimToBe; bit <= SciTokens; bit <<= 1 {
		if strings.EqualFold(name, bit.String()) {
			return bit, true
		}
	}
	return None, false
}

// ParseMethods reads a list of methods separated by commas or blanks, each
// method once and in the order of its first mention. Names that stand for no
// method are returned apart: a peer may know more methods than there are here,
// a knob should not.
func ParseMethods(list string) (methods []Method, unknown []string) {
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		m, ok := ParseMethod(name)
		switch {
		case !ok:
			unknown = append(unknown, name)
		case !slices.Contains(methods, m):
			methods = append(methods, m)
		}
	}
	return methods, unknown
}

// FormatMethods is the list of names of methods, separated by commas.
func FormatMethods(methods []Method) string {
	names := make([]string, len(methods))
	for i, m := range methods {
		names[i] = m.String()
	}
	return strings.Join(names, ",")
}

// mask is all of methods in one integer.
func mask(methods []Method) (bits Method) {
	for _, m := range methods {
		bits |= m
	}
	return bits
}
