// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Role is an end of a connection: the one that connected or the one that
// accepted.
type Role string

// The two ends.
const (
	Client Role = "client"
	Server Role = "server"
)

// Other returns the other end.
func (r Role) Other() Role {
	if r == Client {
		return Server
	}
	return Client
}

// Hex is bytes written as hexadecimal digits.
type Hex []byte

// UnmarshalText reads hexadecimal digits.
func (h *Hex) UnmarshalText(b []byte) error {
	*h = make([]byte, hex.DecodedLen(len(b)))
	_, err := hex.Decode(*h, b)
	return err
}

// Vector is one recorded file.
type Vector struct {
	Name            string
	Description     string
	Peer            string
	HTCondorVersion string `json:"htcondor_version"`
	Secrets         Secrets
	Connections     []*Connection
}

// Secrets hold for all connections of a file.
type Secrets struct {
	Claims       []ClaimSecret
	FileTransfer *ClaimSecret `json:"file_transfer_session"`
	EPSinful     string       `json:"ep_sinful"`
}

// ClaimSecret is a session that comes from a claim id.
type ClaimSecret struct {
	ClaimID     string `json:"claim_id"`
	SessionID   string `json:"session_id"`
	SessionInfo string `json:"session_info"`
	KeyText     string `json:"key_text_ascii"`
	SessionKey  Hex    `json:"session_key_hkdf"`
	TransferKey string
}

// Connection is one recorded TCP connection.
type Connection struct {
	File     string `json:"-"` // of the vector
	Index    int
	Note     string
	OurRole  Role `json:"our_role"` // the other one is the real daemon's
	Session  Session
	Digests  Digests `json:"transcript_digests"`
	Messages []*Message
}

// Session is what is known of the session of a connection.
type Session struct {
	SID            string
	User           string
	Key            Hex    `json:"session_key_hkdf"` // AES key, nil if the connection is clear
	ECDHPrivatePEM string `json:"ecdh_private_pem"` // ours
	ECDHPrivate    Hex    `json:"ecdh_private_raw"` // ours
	ECDHPublic     Hex    `json:"ecdh_public"`
	PeerECDHPublic Hex    `json:"peer_ecdh_public"`
	ECDHShared     Hex    `json:"ecdh_shared_x"`
	AKEP2          *AKEP2
}

// AKEP2 are the values of a TOKEN or PASSWORD exchange. Fields are empty
// where they were not known or do not belong to the method.
type AKEP2 struct {
	PasswordFile        Hex    `json:"password_file_bytes_scrambled"`
	PasswordUnscrambled Hex    `json:"password_file_unscrambled"`
	Password            Hex    `json:"password_cut_at_first_nul"`
	SeedMACData         Hex    `json:"seed_mac_data"`
	Token               string `json:"token"`
	JWTHeader           string `json:"jwt_header"`
	JWTPayload          string `json:"jwt_payload"`
	Signature           Hex    `json:"signature_raw"`
	KeyFile             Hex    `json:"key_file_bytes_scrambled"`
	KeyFileUnscrambled  Hex    `json:"key_file_unscrambled"`
	SigningIKM          Hex    `json:"signing_key_ikm"`
	SigningKey          Hex    `json:"signing_key"`
	A                   string
	B                   string
	RA                  Hex
	RB                  Hex
	K                   Hex
	KPrime              Hex `json:"K_prime"`
	HKTInput            Hex `json:"hkt_input"`
	HKT                 Hex
	HKInput             Hex `json:"hk_input"`
	HK                  Hex
}

// Digests are the SHA-256 sums of what each end sent in clear.
type Digests struct {
	Client Hex `json:"clear_bytes_from_client_sha256"`
	Server Hex `json:"clear_bytes_from_server_sha256"`
}

// Message is one message of a connection, or an event.
type Message struct {
	Event     string // if not empty, nothing else is set
	From      Role
	Encrypted bool
	Packets   []Hex // as on the wire, headers included
	GCM       []GCM // one per packet
	Plaintext Hex
	Items     []Item
	Note      string
}

// GCM is how a packet was encrypted.
type GCM struct {
	Counter uint32
	Nonce   Hex
	AAD     Hex
}

// The events of recordings.
const (
	EncryptionOn    = "encryption on"
	DigestsRestart  = "digests of the connecting side restarted"
	ClientClosed    = "client closed the connection"
	ServerClosed    = "server closed the connection"
	directionIVSize = 16
)

// Item is one item of a message. Exactly one field is set, Types with Ad.
type Item struct {
	Int    *int64
	Str    *string
	Secret *string
	Bytes  Hex
	Ad     *[]string
	Types  []string
}

// UnmarshalJSON reads an item, text as Latin-1.
func (it *Item) UnmarshalJSON(b []byte) error {
	type plain Item
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*it = Item(p)
	for _, s := range []*string{it.Str, it.Secret} {
		if s != nil {
			*s = latin1(*s)
		}
	}
	if it.Ad != nil {
		for i, l := range *it.Ad {
			(*it.Ad)[i] = latin1(l)
		}
	}
	return nil
}

func latin1(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

// Load reads one recording.
func Load(t testing.TB, path string) *Vector {
	t.Helper()
	v, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// LoadDir reads all recordings of a folder.
func LoadDir(t testing.TB, dir string) []*Vector {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings in %s: %v", dir, err)
	}
	var all []*Vector
	for _, p := range paths {
		if filepath.Base(p) != "primitives.json" {
			all = append(all, Load(t, p))
		}
	}
	return all
}

func read(path string) (*Vector, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v := &Vector{}
	if err := json.Unmarshal(b, v); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, c := range v.Connections {
		c.File = v.Name
	}
	return v, nil
}

// String names the connection.
func (c *Connection) String() string { return fmt.Sprintf("%s#%d (%s)", c.File, c.Index, c.Note) }

// BaseIV returns the base IV of what r sent encrypted, nil if there was
// nothing.
func (c *Connection) BaseIV(r Role) []byte {
	for _, m := range c.Messages {
		if m.From == r && m.Encrypted {
			return m.Packets[0][5 : 5+directionIVSize]
		}
	}
	return nil
}

// From returns the messages that r sent.
func (c *Connection) From(r Role) []*Message {
	var all []*Message
	for _, m := range c.Messages {
		if m.Event == "" && m.From == r {
			all = append(all, m)
		}
	}
	return all
}
