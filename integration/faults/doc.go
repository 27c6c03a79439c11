// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults runs our condor_startd and its starters while the world around
// them fails: everything is stopped for longer than a lease, clocks since boot
// differ from one life to the next, and the network loses whoever is at the
// other end. The peers are our own client side of schedd and shadow, so no
// HTCondor is needed; namespaces need root, and ip and unshare of Debian's
// packages iproute2 and util-linux. With the same peers it holds what the
// configuration says of starters to what their jobs see. It owns tests only.
package faults
