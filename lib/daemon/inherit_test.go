// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/errs"
)

const (
	relisock = "9*1*0*0*0*0***1*<127.0.0.1:0>*0*0*0*"
	info     = `[Encryption="YES";Integrity="YES";CryptoMethods="BLOWFISH";CryptoMethodsList="AES.BLOWFISH.3DES";ShortVersion="25.14.0";]`
	hexKey   = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
)

var inheritTable = []struct {
	name, inherit string
	want          Inherit
	bad           string // in the error
}{
	{name: "nobody", inherit: ""},
	{name: "master without shared port", inherit: "4711 <192.0.2.1:9618?noUDP> 0 0", want: Inherit{ParentPID: 4711, ParentAddress: "<192.0.2.1:9618?noUDP>"}},
	{name: "parent alone", inherit: "4711 <192.0.2.1:9618>", want: Inherit{ParentPID: 4711, ParentAddress: "<192.0.2.1:9618>"}},
	{name: "shared port", inherit: "4711 <192.0.2.1:9618?sock=master_4711_ab12> 0 SharedPort:0123cookie/startd_4712_ab12*" + relisock + " 0",
		want: Inherit{ParentPID: 4711, ParentAddress: "<192.0.2.1:9618?sock=master_4711_ab12>", Endpoint: &NamedSocket{Name: "0123cookie/startd_4712_ab12", Descriptor: 9}}},
	{name: "command sockets", inherit: "4711 <192.0.2.1:9618> 0 1 " + relisock + " 2 10*1*0*0*0*0*** 0",
		want: Inherit{ParentPID: 4711, ParentAddress: "<192.0.2.1:9618>", Commands: []Socket{{Stream, 9}, {Datagram, 10}}}},
	{name: "streams", inherit: "4711 <192.0.2.1:9618> 1 " + relisock + " 1 11*1* 0 0",
		want: Inherit{ParentPID: 4711, ParentAddress: "<192.0.2.1:9618>", Streams: []Socket{{Stream, 9}, {Stream, 11}}}},
	{name: "blanks", inherit: "  4711   <192.0.2.1:9618>  0  0 ", want: Inherit{ParentPID: 4711, ParentAddress: "<192.0.2.1:9618>"}},

	{name: "no pid", inherit: "<192.0.2.1:9618> 0 0", bad: `word 1, the pid of the parent, is "<192.0.2.1:9618>"; want a number above 0`},
	{name: "pid 0", inherit: "0 <192.0.2.1:9618> 0 0", bad: "word 1"},
	{name: "no address", inherit: "4711", bad: "word 2, the address of the parent, is missing; want <host:port…>"},
	{name: "address without brackets", inherit: "4711 192.0.2.1:9618 0 0", bad: "word 2"},
	{name: "kind", inherit: "4711 <192.0.2.1:9618> 3 " + relisock, bad: `word 3, the kind of a socket, is "3"; want 0, 1 or 2`},
	{name: "no socket", inherit: "4711 <192.0.2.1:9618> 1", bad: "word 4, a socket, is missing"},
	{name: "descriptor", inherit: "4711 <192.0.2.1:9618> 1 -1*1*", bad: `word 4, a socket, is "-1*…"`},
	{name: "huge descriptor", inherit: "4711 <192.0.2.1:9618> 1 99999999999999999999*1*", bad: "word 4"},
	{name: "endpoint without descriptor", inherit: "4711 <192.0.2.1:9618> 0 SharedPort:name", bad: "word 4, the shared port endpoint"},
	{name: "endpoint without id", inherit: "4711 <192.0.2.1:9618> 0 SharedPort:name/*9*", bad: "word 4, the shared port endpoint"},
	{name: "too many", inherit: "4711 <192.0.2.1:9618> " + strings.Repeat("1 9* ", 65), bad: "more than 64 sockets"},
	{name: "too long", inherit: strings.Repeat("x", maxInherit+1), bad: "too long"},
}

func TestParseInherit(t *testing.T) {
	t.Parallel()
	for _, tt := range inheritTable {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseInherit(tt.inherit, "")
			if tt.bad != "" {
				if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), tt.bad) || !strings.Contains(err.Error(), InheritVariable) {
					t.Errorf("error is %v; want one with %q", err, tt.bad)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestParsePrivateInherit(t *testing.T) {
	t.Parallel()
	parent := "SessionKey:<192.0.2.1:9618>#1700000000#3#" + info + hexKey
	family := "FamilySessionKey:family:" + hexKey[:48] + "#" + info + strings.ToUpper(hexKey)
	in, err := ParseInherit("", parent+"  "+family+" SomethingNew:5")
	if err != nil {
		t.Fatal(err)
	}
	if in.Parent == nil || in.Parent.Session != "<192.0.2.1:9618>#1700000000#3" || !in.Parent.HasInfo || in.Parent.Reveal() != parent[len("SessionKey:"):] {
		t.Errorf("the parent's session is %v", in.Parent)
	}
	if in.Family == nil || in.Family.Session != "family:"+hexKey[:48] {
		t.Errorf("the family's session is %v", in.Family)
	}
	if shown := fmt.Sprintf("%v %+v %#v", in, in.Parent, *in.Family); strings.Contains(strings.ToLower(shown), hexKey) {
		t.Errorf("a key is shown: %s", shown)
	}
	for _, bad := range []string{"SessionKey:" + hexKey, "SessionKey:#" + hexKey, "FamilySessionKey:id#" + info, "FamilySessionKey:id#[" + hexKey, strings.Repeat("x", maxInherit+1)} {
		_, err := ParseInherit("", bad)
		if !errs.Is(err, errs.Invalid) || strings.Contains(err.Error(), hexKey) || !strings.Contains(err.Error(), PrivateInheritVariable) {
			t.Errorf("%.60s…: %v", bad, err)
		}
	}
}

func TestKeysOfSocketsAreNotShown(t *testing.T) {
	t.Parallel()
	_, err := ParseInherit("4711 <192.0.2.1:9618> 1 x*1*0*0*0*0***1*<a:1>*64*3*1*"+hexKey, "")
	if err == nil || strings.Contains(err.Error(), hexKey[:8]) {
		t.Errorf("the error is %v", err)
	}
}

func TestScrub(t *testing.T) {
	t.Parallel()
	env := []string{"PATH=/bin", "CONDOR_INHERIT=1 <a:1> 0 0", "CONDOR_PRIVATE_INHERIT=SessionKey:x", "CONDOR_PARENT_ID=h:1:2", "CONDOR_PRIVATE_SHARED_PORT_COOKIE=c", "NOTIFY_SOCKET=/run/x", "WATCHDOG_USEC=5", "WATCHDOG_PID=6", "_CONDOR_START=true", "odd"}
	if got, want := Scrub(env), []string{"PATH=/bin", "_CONDOR_START=true", "odd"}; !slices.Equal(got, want) {
		t.Errorf("left is %q, want %q", got, want)
	}
	if len(env) != 10 || env[1] != "CONDOR_INHERIT=1 <a:1> 0 0" {
		t.Error("the environment itself was changed")
	}
}

func TestEndpointID(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"cookie/startd_1_2": "startd_1_2", "/var/lock/condor/daemon_sock/startd_1_2": "startd_1_2", "x": "x"} {
		if got := (NamedSocket{Name: name}).ID(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func FuzzInherit(f *testing.F) {
	for _, tt := range inheritTable {
		if len(tt.inherit) < 2000 {
			f.Add(tt.inherit, "")
		}
	}
	f.Add("", "SessionKey:a#b#"+info+hexKey+" FamilySessionKey:family:1#"+info+hexKey)
	f.Fuzz(func(t *testing.T, inherit, private string) {
		in, err := ParseInherit(inherit, private)
		if err != nil {
			if strings.Contains(err.Error(), hexKey) {
				t.Errorf("a key is shown: %v", err)
			}
			return
		}
		for _, s := range slices.Concat(in.Streams, in.Commands) {
			if s.Descriptor < 0 || s.Descriptor > maxDescriptor || s.Kind != Stream && s.Kind != Datagram {
				t.Errorf("socket %+v", s)
			}
		}
		if in.ParentPID < 0 || in.ParentPID == 0 != (in.ParentAddress == "") {
			t.Errorf("parent %d at %q", in.ParentPID, in.ParentAddress)
		}
		if in.Endpoint != nil && in.Endpoint.ID() == "" {
			t.Error("an endpoint without id")
		}
	})
}
