// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"net/netip"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/errs"
)

const vectors = "../testdata/vectors"

// exchange is the part of a recorded connection that is ours: from the mask to
// the last message of the method.
type exchange struct {
	*cedartest.Connection
	messages []*cedartest.Message
}

func exchanges(t *testing.T) []exchange {
	t.Helper()
	var all []exchange
	for _, v := range cedartest.LoadDir(t, vectors) {
		for _, c := range v.Connections {
			e := exchange{Connection: c}
			for _, m := range c.Messages {
				if m.Note == "method mask" || m.Note == "chosen method" || strings.HasPrefix(m.Note, "AKEP2") || strings.HasPrefix(m.Note, "FS:") {
					e.messages = append(e.messages, m)
				}
			}
			if len(e.messages) > 1 {
				all = append(all, e)
			}
		}
	}
	if len(all) < 10 {
		t.Fatalf("only %d recorded authentications", len(all))
	}
	return all
}

func (e exchange) skip(m *cedartest.Message) bool {
	for _, mine := range e.messages {
		if m == mine {
			return false
		}
	}
	return true
}

func (e exchange) method() Method { return Method(*e.messages[1].Items[0].Int) }

// dir is the name of the directory that the FS server asked for.
func (e exchange) dir() string { return *e.messages[2].Items[0].Str }

// bytesOf are the items of a message that are bytes, in order.
func bytesOf(m *cedartest.Message) (all [][]byte) {
	for _, it := range m.Items {
		if it.Bytes != nil {
			all = append(all, it.Bytes)
		}
	}
	return all
}

// settings lays out the key files and tokens of a recording.
func (e exchange) settings(t *testing.T) (Settings, time.Time) {
	t.Helper()
	dir := t.TempDir()
	set := Settings{UIDDomain: "wirev.test", TrustDomain: "wirev.test", FSDir: "/tmp", FSBinding: true}
	now := noon()
	k := e.Session.AKEP2
	if k == nil && e.method() == Token {
		// The wrong hk of one recording was computed for the token of another.
		for _, other := range exchanges(t) {
			if other.File == e.File && other.Session.AKEP2 != nil {
				k = other.Session.AKEP2
			}
		}
	}
	if k == nil {
		return set, now
	}
	set.PasswordFile = write(t, dir, "password", k.PasswordFile)
	if k.KeyFile == nil {
		return set, now
	}
	var header struct{ KID string }
	if err := json.Unmarshal([]byte(k.JWTHeader), &header); err != nil {
		t.Fatal(err)
	}
	set.KeyDir = dir
	file := write(t, dir, header.KID, k.KeyFile)
	if header.KID == PoolKey {
		set.PoolKeyFile = file
	}
	if k.Token != "" {
		set.TokenDirs = []string{filepath.Join(dir, "tokens")}
		if err := os.Mkdir(set.TokenDirs[0], 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, set.TokenDirs[0], "token", []byte("# recorded\n\n"+k.Token+"\n"))
	}
	return set, now
}

// address is that of the server, as the name of the FS directory shows it.
func (e exchange) address() netip.AddrPort {
	if e.method() != FS {
		return netip.AddrPort{}
	}
	parts := strings.Split(path.Base(e.dir()), "_")
	return netip.MustParseAddrPort(parts[1] + ":" + parts[2])
}

func TestRecordedAsClient(t *testing.T) {
	t.Parallel()
	for _, e := range exchanges(t) {
		if len(e.messages[len(e.messages)-1].Note) > len("AKEP2 message 3") && e.method() == Token {
			continue // the client that sends a wrong hk is not one of ours
		}
		t.Run(e.Connection.String(), func(t *testing.T) {
			t.Parallel()
			set, now := e.settings(t)
			mem := newMemory()
			c := &Client{Settings: set, System: System{Files: plainFiles{}, Owners: mem, Now: func() time.Time { return now }}}
			p := Peer{Version: modern, Remote: e.address(), TrustDomain: "wirev.test"}
			k := e.Session.AKEP2
			if k != nil {
				c.Rand = bytes.NewReader(k.RA)
				if e.method() == Token && k.Token == "" {
					// The tool made its token from the key.
					id := claim(t, k.JWTPayload, "jti")
					raw, err := hex.DecodeString(id)
					if err != nil {
						t.Fatal(err)
					}
					p.IssuerKeys = []string{PoolKey}
					c.Rand = io.MultiReader(bytes.NewReader(raw), bytes.NewReader(k.RA))
				}
			}
			player := &cedartest.Player{Conn: e.Connection, Role: cedartest.Server, Exact: true, Skip: e.skip}
			nc, wait := player.Start(t)
			conn := cedar.NewConn(nc, cedar.Limits{})
			conn.SetPacketSize(cedar.ClassicPacket)
			r, err := c.Authenticate(context.Background(), conn, p, []Method{e.method()})
			if err != nil {
				t.Fatal(err)
			}
			wait()
			if r.Identity.Method != e.method() {
				t.Errorf("method %v", r.Identity.Method)
			}
			switch e.method() {
			case FS:
				want := e.dir() + e.address().String()
				if len(mem.made) != 1 || mem.made[0] != want || len(mem.removed) != 1 || mem.removed[0] != want {
					t.Errorf("made %q, removed %q, want %q", mem.made, mem.removed, want)
				}
			default:
				if r.Identity.FQU() != "condor@password" {
					t.Errorf("the server is %q", r.Identity.FQU())
				}
			}
		})
	}
}

func TestRecordedAsServer(t *testing.T) {
	t.Parallel()
	for _, e := range exchanges(t) {
		t.Run(e.Connection.String(), func(t *testing.T) {
			t.Parallel()
			set, now := e.settings(t)
			mem := newMemory()
			s := &Server{Settings: set, System: System{Files: plainFiles{}, Owners: mem, Now: func() time.Time { return now }}}
			wrongProof := false
			switch e.method() {
			case FS:
				name := e.dir()
				s.Rand = bytes.NewReader(lettersBack(t, strings.TrimSuffix(name, "_")))
				mem.entries[name+e.address().String()] = mem.dirOf(1000)
			default:
				second := bytesOf(e.messages[3])
				s.Rand = bytes.NewReader(second[1])
				wrongProof = strings.Contains(e.messages[4].Note, "wrong")
			}
			player := &cedartest.Player{Conn: e.Connection, Role: cedartest.Client, Exact: true, Skip: e.skip}
			nc, wait := player.Start(t)
			conn := cedar.NewConn(nc, cedar.Limits{})
			conn.SetPacketSize(cedar.ClassicPacket)
			r, err := s.Authenticate(context.Background(), conn, Peer{Version: modern, Local: e.address()}, []Method{e.method()})
			wait()
			if wrongProof {
				if !errs.Is(err, errs.Denied) || len(r.Failed) != 1 || r.Identity.User != "" {
					t.Fatalf("a wrong proof: %+v, %v", r, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := "alice@wirev.test" // the owner in memory
			if e.method() != FS {
				want = *e.messages[2].Items[2].Str
			}
			if got := r.Identity.FQU(); got != want {
				t.Errorf("the client is %q, want %q", got, want)
			}
			if e.method() == Token {
				k := e.Session.AKEP2
				if got, want := r.Identity.Token.ID, claim(t, k.JWTPayload, "jti"); got != want {
					t.Errorf("token %q, want %q", got, want)
				}
			}
		})
	}
}

// lettersBack is the randomness that makes up the last nine letters of a name.
func lettersBack(t *testing.T, name string) []byte {
	t.Helper()
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	b := []byte(name[len(name)-9:])
	for i, c := range b {
		at := strings.IndexByte(letters, c)
		if at < 0 {
			t.Fatalf("letter %q", c)
		}
		b[i] = byte(at)
	}
	return b
}

func claim(t *testing.T, payload, name string) string {
	t.Helper()
	var claims map[string]any
	if err := json.Unmarshal([]byte(payload), &claims); err != nil {
		t.Fatal(err)
	}
	s, _ := claims[name].(string)
	return s
}

func TestRecordedClientWithoutCommonMethod(t *testing.T) {
	t.Parallel()
	v := cedartest.Load(t, vectors+"/collector-refusals.json")
	// The server closes after the mask.
	player := &cedartest.Player{Conn: v.Connections[2], Role: cedartest.Server, Exact: true, Skip: func(m *cedartest.Message) bool {
		return m.Event == "" && m.Note != "method mask"
	}}
	nc, wait := player.Start(t)
	c := &Client{System: System{User: "nobody"}}
	_, err := c.Authenticate(context.Background(), cedar.NewConn(nc, cedar.Limits{}), Peer{}, []Method{ClaimToBe})
	wait()
	if err == nil || !strings.Contains(err.Error(), "did not choose one of CLAIMTOBE") {
		t.Errorf("%v", err)
	}
}

func TestPrimitives(t *testing.T) {
	t.Parallel()
	type hexes = cedartest.Hex
	var v struct {
		KeyFile struct{ Scrambled, Unscrambled hexes } `json:"key_file_scramble"`
		Pool    struct {
			Token      string
			IKM        hexes `json:"ikm_is_unscrambled_twice"`
			SigningKey hexes `json:"signing_key"`
			Signature  hexes
		} `json:"token_pool_key"`
		Named struct {
			Token      string
			IKM        hexes `json:"ikm_is_unscrambled_once"`
			SigningKey hexes `json:"signing_key"`
			Signature  hexes
			K          hexes `json:"akep2_K"`
		} `json:"token_named_key"`
		Password struct {
			File, Password hexes
			K              hexes `json:"akep2_K"`
		}
		MACs []struct {
			Method string
			A, B   string
			RA, RB hexes
			K      hexes
			HKT    hexes
			HK     hexes
		} `json:"akep2_macs"`
	}
	b, err := os.ReadFile(vectors + "/primitives.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	same := func(what string, got, want []byte) {
		t.Helper()
		if len(want) == 0 || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", what, got, want)
		}
	}
	same("unscrambled", Scramble(v.KeyFile.Scrambled), v.KeyFile.Unscrambled)
	same("scrambled", Scramble(v.KeyFile.Unscrambled), v.KeyFile.Scrambled)
	for _, tt := range []struct {
		id, token       string
		file, key, sign []byte
	}{
		{PoolKey, v.Pool.Token, Scramble(v.Pool.IKM[:len(v.Pool.IKM)/2]), v.Pool.SigningKey, v.Pool.Signature},
		{"key2", v.Named.Token, Scramble(v.Named.IKM), v.Named.SigningKey, v.Named.Signature},
	} {
		key, err := NewSigningKey(tt.id, tt.file)
		if err != nil {
			t.Fatal(err)
		}
		same(tt.id+": signing key", key.key.open(), tt.key)
		token, err := ParseToken(tt.token)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := key.sign(token.Claims.algorithm, token.signed)
		if err != nil {
			t.Fatal(err)
		}
		same(tt.id+": signature", signature, tt.sign)
		same(tt.id+": signature in the token", token.signature.open(), tt.sign)
		if tt.id == "key2" {
			keys, err := tokenKeys(token.signed, signature)
			if err != nil {
				t.Fatal(err)
			}
			same("K of the token", keys.k, v.Named.K)
		}
	}
	password, err := PoolPassword(v.Password.File)
	if err != nil {
		t.Fatal(err)
	}
	same("password", password, v.Password.Password)
	same("K of the password", passwordKeys(password).k, v.Password.K)
	if len(v.MACs) == 0 {
		t.Error("no MACs")
	}
	for _, m := range v.MACs {
		keys := akep2Keys{k: Secret(m.K)}
		same(m.Method+" hkt", keys.hkt(m.A, m.B, m.RA, m.RB), m.HKT)
		same(m.Method+" hk", keys.hk(m.A, m.RB), m.HK)
	}
}

// A token made here is, byte for byte, the one that condor_ping made.
func TestIssueAsRecorded(t *testing.T) {
	t.Parallel()
	for _, e := range exchanges(t) {
		k := e.Session.AKEP2
		if k == nil || k.JWTPayload == "" {
			continue
		}
		signed := base64.RawURLEncoding.EncodeToString([]byte(k.JWTHeader)) + "." + base64.RawURLEncoding.EncodeToString([]byte(k.JWTPayload))
		claims, err := parseSigned(signed)
		if err != nil {
			t.Fatal(err)
		}
		key, err := NewSigningKey(claims.KeyID, k.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		id, err := hex.DecodeString(claims.ID)
		if err != nil {
			t.Fatal(err)
		}
		o := Order{Issuer: claims.Issuer, Subject: claims.Subject, Levels: claims.Limits(), Rand: bytes.NewReader(id)}
		if !claims.Expires.IsZero() {
			o.Lifetime = claims.Expires.Sub(claims.Issued)
		}
		token, err := key.Issue(o, claims.Issued)
		if err != nil {
			t.Fatal(err)
		}
		if token.signed != signed || !token.signature.open().Equal(k.Signature) {
			t.Errorf("%s: issued %s\nwant %s", e.Connection, token.signed, signed)
		}
	}
}
