// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/tool/adtext"
)

// stdinName is the file name that stands for the standard input.
const stdinName = "-"

// errNoFile is what a missing file is called on every system.
var errNoFile = errors.New("no such file")

// adName is how messages call an ad file.
func adName(name string) string {
	if name == stdinName {
		return "<stdin>"
	}
	return name
}

// readAd reads the ad in a file, which holds one.
func readAd(name, syntax string, stdin io.Reader) (ad *classad.Ad, err error) {
	err = withFile(name, stdin, func(r io.Reader) error {
		ad, err = adtext.Read(r, syntax)
		return err
	})
	return ad, err
}

// printAds prints every ad of a file as it is read.
func printAds(out io.Writer, name, syntax, format string, stdin io.Reader) error {
	return withFile(name, stdin, func(r io.Reader) error { return adtext.Copy(out, r, syntax, format) })
}

// withFile opens a file for do. What is wrong with the file begins with its name;
// what is wrong with the output does not.
func withFile(name string, stdin io.Reader, do func(io.Reader) error) error {
	r, err := stdin, error(nil)
	if name != stdinName {
		var f *os.File
		if f, err = os.Open(name); err == nil {
			// It is only read: closing it cannot lose anything.
			defer func() { _ = f.Close() }()
			r = f
		}
	}
	if err == nil {
		err = do(r)
	}
	var output *adtext.WriteError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &output):
		return output.Err
	}
	return &adtext.Mistake{Name: adName(name), Err: plainFileError(err)}
}

// plainFileError is what is wrong with a file without its name, which the
// message begins with.
func plainFileError(err error) error {
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNoFile
	case errors.As(err, &path):
		return path.Err
	}
	return err
}
