// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// The plan of a pool's job takes its secrets to the starter and shows them to
// nobody else.
func TestShadowSide(t *testing.T) {
	t.Parallel()
	const secret, kin = "0123456789abcdef", "fedcba9876543210"
	p := protocol.Plan{Activation: "slot1#1", Shadow: &protocol.ShadowSide{Claim: "<10.0.0.1:1>#1#2#[]" + secret, Family: "family:1#[]" + kin, Address: "<10.0.0.1:1>"}}
	line, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var got protocol.Plan
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	if s := got.Shadow; s == nil || s.Claim.Reveal() != p.Shadow.Claim.Reveal() || s.Family.Reveal() != p.Shadow.Family.Reveal() || s.Address != p.Shadow.Address {
		t.Errorf("the plan arrives as %s", line)
	}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		fmt.Fprintf(&out, verb+"\n", p)
		fmt.Fprintf(&out, verb+"\n", *p.Shadow)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("plan", "side", *p.Shadow)
	if strings.Contains(out.String(), secret) || strings.Contains(out.String(), kin) {
		t.Errorf("a secret is in %s", out.String())
	}
	if line, err := json.Marshal(protocol.Plan{}); err != nil || strings.Contains(string(line), "shadow") {
		t.Errorf("a plan without a shadow is %s (%v)", line, err)
	}
}
