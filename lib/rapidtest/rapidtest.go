// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rapidtest checks properties with pgregory.net/rapid from a seed that
// does not change, so that `go test` gives the same answer on every run. It
// owns that seed and nothing else: what is drawn is the test's affair. Other
// seeds are asked for with RAPID_SEED or -rapid.seed, where 0 is a new one each
// time; ci/fuzz does so. A test must never call rapid.Check itself.
//
//	rapidtest.Check(t, func(t *rapid.T) { n := rapid.Int().Draw(t, "n") … })
package rapidtest

import (
	"flag"
	"os"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// The flag and the environment variable by which rapid is told its seed.
const (
	seedFlag = "rapid.seed"
	seedEnv  = "RAPID_SEED"
)

// seed is what rapid draws from unless another one is asked for.
const seed = "20261123"

// fixSeed runs once, before the first of the parallel tests reads the flag.
var fixSeed = sync.OnceValue(func() error {
	_, env := os.LookupEnv(seedEnv)
	return fixSeedOf(flag.CommandLine, env)
})

// Check is rapid.Check from the fixed seed.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	if err := fixSeed(); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, property)
}

// fixSeedOf sets the seed among the flags, unless the command line or the
// environment has.
func fixSeedOf(flags *flag.FlagSet, env bool) error {
	asked := env
	flags.Visit(func(f *flag.Flag) { asked = asked || f.Name == seedFlag })
	if asked {
		return nil
	}
	return flags.Set(seedFlag, seed)
}
