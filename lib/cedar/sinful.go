// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// maxSinful bounds the text of an address.
const maxSinful = 64 << 10

// NoPort stands for a port that an address does not name.
const NoPort = -1

// Sinful is the address of a daemon, "<host:port?key=value&…>".
type Sinful struct {
	Host    string // name or address, IPv6 without brackets
	Port    int    // NoPort if none is named
	SockID  string // sock: whom to ask the shared port for
	Alias   string // alias: host name to show and to verify
	PrivNet string // PrivNet: network in which PrivAddr is to be used

	PrivAddr *Sinful
	CCB      []Broker         // CCBID: reach it through these
	Addrs    []netip.AddrPort // addrs: all addresses, preferred one first
	NoUDP    bool

	// Extra are the parameters that have no field, decoded.
	Extra map[string]string
}

// Broker is one entry of CCBID.
type Broker struct {
	Address string // of the broker, a sinful without its angle brackets
	ID      string // under which the target is registered there
}

// Sinful returns the broker's address.
func (b Broker) Sinful() (Sinful, error) { return ParseSinful("<" + b.Address + ">") }

// String returns the entry as it stands in CCBID.
func (b Broker) String() string { return b.Address + "#" + b.ID }

// ParseSinful reads an address. The angle brackets may be missing, and it may
// be in the form of AddressV1.
func ParseSinful(text string) (Sinful, error) {
	if len(text) > maxSinful {
		return Sinful{}, badSinful(text, "the text is too long")
	}
	switch {
	case strings.HasPrefix(text, "{"):
		return parseAddressV1(text)
	case strings.HasPrefix(text, "<"):
	case !strings.HasPrefix(text, "[") && colonsInHost(text) > 1:
		text = "<[" + text + "]>"
	default:
		text = "<" + text + ">"
	}
	rest, ok := strings.CutSuffix(text[1:], ">")
	if !ok || strings.ContainsRune(rest, '>') {
		return Sinful{}, badSinful(text, "it does not end with its only '>'")
	}
	s := Sinful{Port: NoPort}
	if inner, ok := strings.CutPrefix(rest, "["); ok {
		if s.Host, rest, ok = strings.Cut(inner, "]"); !ok {
			return Sinful{}, badSinful(text, "'[' without ']'")
		}
	} else {
		end := strings.IndexAny(rest, ":?")
		if end < 0 {
			end = len(rest)
		}
		s.Host, rest = rest[:end], rest[end:]
	}
	if !hostChars(s.Host) {
		return Sinful{}, badSinful(text, "the host has a character that no name has")
	}
	if port, ok := strings.CutPrefix(rest, ":"); ok {
		end := 0
		for end < len(port) && port[end] >= '0' && port[end] <= '9' {
			end++
		}
		if end > 0 {
			n, err := strconv.ParseUint(port[:end], 10, 16)
			if err != nil {
				return Sinful{}, badSinful(text, "the port is not 0 to 65535")
			}
			s.Port = int(n)
		}
		rest = port[end:]
	}
	if rest == "" {
		return s, nil
	}
	params, ok := strings.CutPrefix(rest, "?")
	if !ok {
		return Sinful{}, badSinful(text, "after host and port comes neither '?' nor '>'")
	}
	return s, s.params(text, params)
}

// hostChars reports whether all characters of host can be in an address.
func hostChars(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("[]<>?", r) })
}

func colonsInHost(text string) int {
	host, _, _ := strings.Cut(text, "?")
	return strings.Count(host, ":")
}

func badSinful(text, why string) error {
	return errs.E("cedar.ParseSinful", errs.Invalid, clip(text), errors.New(why+`; want <host:port?key=value&...>`))
}

// params reads key=value&key=value. The last of several equal keys counts.
func (s *Sinful) params(text, params string) error {
	for pair := range strings.FieldsFuncSeq(params, func(r rune) bool { return r == '&' || r == ';' }) {
		k, v, _ := strings.Cut(pair, "=")
		key, err1 := unescape(k)
		value, err2 := unescape(v)
		if key == "" || err1 != nil || err2 != nil {
			return badSinful(text, "a parameter has no name or a bad %XX")
		}
		if err := s.set(key, value); err != nil {
			return badSinful(text, err.Error())
		}
	}
	return nil
}

// set sets one parameter. What a field cannot hold as it is stays in Extra;
// addrs and CCBID must be what they should be.
func (s *Sinful) set(key, value string) error {
	delete(s.Extra, key)
	switch key {
	case "sock":
		s.SockID = value
	case "alias":
		s.Alias = value
	case "PrivNet":
		s.PrivNet = value
	case "noUDP":
		s.NoUDP = true
		if value == "" {
			return nil
		}
	case "PrivAddr":
		s.PrivAddr = parsePrivate(value)
		if s.PrivAddr != nil {
			return nil
		}
	case "CCBID":
		brokers, err := parseBrokers(value)
		if err != nil {
			return err
		}
		if s.CCB = brokers; s.ccbText() == value && value != "" {
			return nil
		}
		s.CCB = nil
	case "addrs":
		addrs, err := parseAddrs(value)
		if err != nil {
			return err
		}
		if s.Addrs = addrs; addrsText(addrs) == value && value != "" {
			return nil
		}
		s.Addrs = nil
	}
	if value == "" || !slices.Contains([]string{"sock", "alias", "PrivNet"}, key) {
		s.extra(key, value)
	}
	return nil
}

// parsePrivate reads PrivAddr, which must be an address that has none itself
// and is written as usual; nil if it is not.
func parsePrivate(value string) *Sinful {
	if strings.Contains(value, "PrivAddr") {
		return nil
	}
	p, err := ParseSinful(value)
	if err != nil || p.String() != value {
		return nil
	}
	return &p
}

func (s *Sinful) extra(key, value string) {
	if s.Extra == nil {
		s.Extra = map[string]string{}
	}
	s.Extra[key] = value
}

func parseBrokers(value string) ([]Broker, error) {
	var all []Broker
	for entry := range strings.FieldsSeq(value) {
		address, id, ok := strings.Cut(entry, "#")
		if !ok || address == "" || id == "" {
			return nil, fmt.Errorf("CCBID has %q, want address#id", clip(entry))
		}
		if !isID(id) {
			return nil, fmt.Errorf("CCBID has the id %q with a character that no id has", clip(id))
		}
		all = append(all, Broker{Address: address, ID: id})
	}
	return all, nil
}

func (s Sinful) ccbText() string {
	words := make([]string, len(s.CCB))
	for i, b := range s.CCB {
		words[i] = b.String()
	}
	return strings.Join(words, " ")
}

// parseAddrs reads ip-port+ip-port, where the colons of IPv6 are dashes.
func parseAddrs(value string) ([]netip.AddrPort, error) {
	var all []netip.AddrPort
	for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '+' }) {
		a, err := netip.ParseAddrPort(strings.ReplaceAll(word, "-", ":"))
		if err != nil || a.Addr().Zone() != "" {
			return nil, fmt.Errorf("addrs has %q, want ip-port", clip(word))
		}
		all = append(all, a)
	}
	return all, nil
}

func addrsText(addrs []netip.AddrPort) string {
	words := make([]string, len(addrs))
	for i, a := range addrs {
		words[i] = strings.ReplaceAll(a.String(), ":", "-")
	}
	return strings.Join(words, "+")
}

// String returns the address as every daemon writes it: parameters sorted by
// the bytes of their names. Daemons compare these texts.
func (s Sinful) String() string {
	b := s.appendHostPort([]byte{'<'})
	params := s.all()
	sep := byte('?')
	for _, k := range slices.Sorted(maps.Keys(params)) {
		b = appendEscaped(append(b, sep), k)
		if v := params[k]; v != "" {
			b = appendEscaped(append(b, '='), v)
		}
		sep = '&'
	}
	return string(append(b, '>'))
}

// all returns the parameters by their names.
func (s Sinful) all() map[string]string {
	params := maps.Clone(s.Extra)
	if params == nil {
		params = map[string]string{}
	}
	for k, v := range map[string]string{"sock": s.SockID, "alias": s.Alias, "PrivNet": s.PrivNet} {
		if v != "" {
			params[k] = v
		}
	}
	if s.PrivAddr != nil {
		params["PrivAddr"] = s.PrivAddr.String()
	}
	if len(s.CCB) > 0 {
		params["CCBID"] = s.ccbText()
	}
	if len(s.Addrs) > 0 {
		params["addrs"] = addrsText(s.Addrs)
	}
	if _, there := params["noUDP"]; s.NoUDP && !there {
		params["noUDP"] = ""
	}
	return params
}

func (s Sinful) appendHostPort(b []byte) []byte {
	if strings.ContainsRune(s.Host, ':') && !strings.ContainsRune(s.Host, '[') {
		b = append(append(append(b, '['), s.Host...), ']')
	} else {
		b = append(b, s.Host...)
	}
	if s.Port != NoPort {
		b = strconv.AppendInt(append(b, ':'), int64(s.Port), 10)
	}
	return b
}

// HostPort returns "host:port" as net.Dial takes it.
func (s Sinful) HostPort() string { return string(s.appendHostPort(nil)) }

// IsZero reports whether s is the zero value.
func (s Sinful) IsZero() bool { return s.Host == "" && s.Port == 0 && len(s.all()) == 0 }

const hexDigits = "0123456789abcdef"

func appendEscaped(b []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-:#[]+", c) >= 0 {
			b = append(b, c)
		} else {
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return b
}

func unescape(s string) (string, error) {
	if strings.IndexByte(s, '%') < 0 {
		return s, nil
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", errors.New("a %XX is cut off")
		}
		n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", errors.New("a %XX is not hexadecimal")
		}
		b = append(b, byte(n))
		i += 2
	}
	return string(b), nil
}
