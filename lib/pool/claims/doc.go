// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package claims answers negotiators, schedds and shadows about claims: a claim is
// requested, activated, suspended, deactivated, released and kept alive, several are
// coalesced, and unclaimed slots are offered to an access point that takes them without
// a negotiator. It owns the form of these commands, the sessions of claim ids, the
// requests that are not answered yet, the schedds that are asked whether they still want
// their claims, and a shadow's connection from the command that asked for an activation
// to the starter.
//
// It must never decide about a slot, hold the engine up, or let a claim id out except to
// its holder.
package claims
