// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/rapidtest"
)

// What sha256sum prints of "A" and of nothing.
const (
	sumOfA    = "559aead08264d5795d3909718cdd05abd49572e84fe55590eef31a88a08fdffd"
	sumOfNone = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// A checkpoint that came back is what its manifest says, or the job does not
// start from it. The reasons are HTCondor's, which its own tests look for.
//
// row: S3-051
func TestVerifyCheckpoint(t *testing.T) {
	t.Parallel()
	const name = "_condor_checkpoint_MANIFEST.0003"
	manifest := func(lines ...string) string {
		var files []manifestLine
		for _, l := range lines {
			files = append(files, lineOf([]byte(l)))
		}
		return string(manifestText(name, files))
	}
	whole := manifest(sumOfA+" *a", sumOfNone+" *d/e")
	for title, tt := range map[string]struct {
		put  map[string]string // beside a and d/e; "" takes one away
		want string            // "" if all is well
	}{
		"whole":                  {map[string]string{name: whole}, ""},
		"none":                   {nil, ""},
		"names like one":         {map[string]string{manifestPrefix: "x", manifestPrefix + "1x": "x", manifestPrefix + "-1": "x", manifestPrefix + "99999999999": "x"}, ""},
		"listed twice":           {map[string]string{name: manifest(sumOfA+" *a", sumOfA+" *./a", sumOfA+" *a")}, ""},
		"text mode of sha256sum": {map[string]string{name: strings.ReplaceAll(whole, " *", " ")}, "Invalid MANIFEST file, aborting."}, // the sum is over other lines
		"two":                    {map[string]string{name: whole, manifestPrefix + "4": whole}, "Found more than one MANIFEST file, aborting."},
		"missing":                {map[string]string{name: whole, "a": ""}, "Failed to open checkpoint file ('a') to compute checksum., aborting."},
		"changed":                {map[string]string{name: whole, "d/e": "A"}, "Checkpoint file 'd/e' did not have expected checksum (" + sumOfA + " vs " + sumOfNone + ")., aborting."},
		"a sum is wrong":         {map[string]string{name: manifest(sumOfNone + " *a")}, "Checkpoint file 'a' did not have expected checksum (" + sumOfA + " vs " + sumOfNone + ")., aborting."},
		"a directory":            {map[string]string{name: manifest(sumOfNone + " *d")}, "Failed to open checkpoint file ('d') to compute checksum., aborting."},
		"outside":                {map[string]string{name: manifest(sumOfNone + " *../a")}, "Failed to open checkpoint file ('../a') to compute checksum., aborting."},
		"absolute":               {map[string]string{name: manifest(sumOfNone + " */dev/null")}, "Failed to open checkpoint file ('/dev/null') to compute checksum., aborting."},
		"no name":                {map[string]string{name: manifest(sumOfNone)}, "Failed to open checkpoint file ('') to compute checksum., aborting."},
		"nothing listed":         {map[string]string{name: manifest()}, "The MANIFEST lists no file, aborting."},
		"its own sum is wrong":   {map[string]string{name: strings.ToUpper(whole)}, "Invalid MANIFEST file, aborting."},
		"that of another":        {map[string]string{manifestPrefix + "0004": whole}, "Invalid MANIFEST file, aborting."},
		"cut":                    {map[string]string{name: whole[:len(whole)/2]}, "Invalid MANIFEST file, aborting."},
		"a line is gone":         {map[string]string{name: whole[strings.Index(whole, "\n")+1:]}, "Invalid MANIFEST file, aborting."},
		"only a line break":      {map[string]string{name: "\n"}, "Invalid MANIFEST file, aborting."},
		"a directory for it":     {map[string]string{name + "/x": "y"}, "Invalid MANIFEST file, aborting."},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			r := root(t)
			put(t, r.Name(), map[string]string{"a": "A", "d/e": ""})
			for file, text := range tt.put {
				if file == "a" && text == "" {
					if err := r.Remove(file); err != nil {
						t.Fatal(err)
					}
					continue
				}
				put(t, r.Name(), map[string]string{file: text})
			}
			err := VerifyCheckpoint(t.Context(), r)
			var bad *CheckpointError
			switch {
			case tt.want == "":
				if err != nil {
					t.Fatal(err)
				}
				if _, serr := r.Stat(name); !errors.Is(serr, os.ErrNotExist) {
					t.Errorf("the manifest is left: %v", serr)
				}
			case !errors.As(err, &bad) || bad.Reason != tt.want:
				t.Errorf("got %v, want %s", err, tt.want)
			case bad.Number != map[string]int{"two": -1, "that of another": 4}[title] && bad.Number != 3:
				t.Errorf("it is the checkpoint %d", bad.Number)
			}
		})
	}
}

// A link that leads out of the scratch directory is not followed, and a pipe not
// waited for: Stat of a device says that it is no plain file.
func TestVerifyStaysInside(t *testing.T) {
	t.Parallel()
	for to, file := range map[string]string{"/etc/passwd": "etc", "/dev/zero": "zero", "../": "up"} {
		r := root(t)
		if err := r.Symlink(to, file); err != nil {
			t.Skip(err)
		}
		put(t, r.Name(), map[string]string{manifestName(0): string(manifestText(manifestName(0), []manifestLine{{sumOfA, file}}))})
		var bad *CheckpointError
		if err := VerifyCheckpoint(t.Context(), r); !errors.As(err, &bad) || !strings.HasPrefix(bad.Reason, "Failed to open") {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// Who ends the transfer is told so, and no file is blamed.
func TestVerifyEnds(t *testing.T) {
	t.Parallel()
	r := root(t)
	put(t, r.Name(), map[string]string{"a": "A", manifestName(0): string(manifestText(manifestName(0), []manifestLine{{sumOfA, "a"}}))})
	ctx, cancel := context.WithCancelCause(t.Context())
	want := errors.New("the job has to leave")
	cancel(want)
	if err := VerifyCheckpoint(ctx, r); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}

// What is listed is read back.
func TestManifestProperty(t *testing.T) {
	t.Parallel()
	rapidtest.Check(t, func(t *rapid.T) {
		name := manifestName(rapid.IntRange(0, 1<<31-1).Draw(t, "number"))
		if _, ok := manifestNumber(name); !ok {
			t.Fatalf("%s is no manifest", name)
		}
		var files []manifestLine
		for range rapid.IntRange(0, 8).Draw(t, "files") {
			files = append(files, manifestLine{
				sum:  rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "sum"),
				name: rapid.StringMatching(`[^\s\v*](.*[^\s\v])?`).Draw(t, "name"),
			})
		}
		got, ok := parseManifest(name, manifestText(name, files))
		if diff := cmp.Diff(files, got, cmp.AllowUnexported(manifestLine{})); !ok || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", ok, diff)
		}
	})
}

// A manifest is the word of the job's user.
func FuzzManifest(f *testing.F) {
	name := manifestName(0)
	f.Add([]byte(""))
	f.Add([]byte("\n\n"))
	f.Add([]byte(sumOfNone + " *" + name))
	f.Add(manifestText(name, []manifestLine{{sumOfA, "a"}, {sumOfNone, "d/e"}}))
	f.Add(manifestText(name, []manifestLine{{sumOfA, "a\nb"}, {"", "*"}}))
	f.Fuzz(func(t *testing.T, text []byte) {
		files, ok := parseManifest(name, text)
		if !ok {
			return
		}
		if lines := bytes.Count(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")); len(files) != lines {
			t.Errorf("%d files of %d lines", len(files), lines)
		}
		for _, file := range files {
			if strings.Contains(file.sum, " ") || strings.ContainsAny(file.sum+file.name, "\n") {
				t.Errorf("%+v is no line", file)
			}
		}
		// Whatever a line is, changing one makes the manifest another one.
		if len(files) > 0 {
			other := slices.Clone(text)
			other[0] ^= 1
			if _, ok := parseManifest(name, other); ok {
				t.Error("its checksum does not tell that it was changed")
			}
		}
	})
}
