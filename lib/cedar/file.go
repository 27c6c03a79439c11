// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/execpoint/execpoint/lib/errs"
)

const (
	fileChunk = 262144  // bytes of a file in one message
	rawChunk  = 65536   // bytes of a file sent without messages under one deadline
	emptyFile = 666     // what stands in place of an empty file's contents
	maxChunk  = 4 << 20 // the largest piece taken from a peer
)

// PutFile sends size bytes of r as one file: in messages of 256 KiB on an
// encrypted stream, else as they are, straight on the connection. What was put
// before belongs to the message that announces the size. EndMessage must
// follow, as after any item, or more items. If r ends early the stream is
// broken.
func (c *Conn) PutFile(ctx context.Context, r io.Reader, size int64) error {
	defer c.Bind(ctx)()
	if size < 0 {
		return c.malformed("PutFile", "the size of a file is negative")
	}
	if err := c.announceFile(size, fileChunk); err != nil || size == 0 {
		return err
	}
	var err error
	if c.aes != nil {
		err = c.putPieces(r, size)
	} else {
		err = c.putRaw(r, size)
	}
	if err != nil {
		c.out.err = err
		return err
	}
	c.out.fileDone = true
	return nil
}

// PutEmptyFile sends the placeholder for a file that cannot be read. As after
// PutFile, EndMessage must follow.
func (c *Conn) PutEmptyFile() error { return c.announceFile(0, 1) }

func (c *Conn) announceFile(size, chunk int64) error {
	c.PutInt(size)
	if c.aes != nil {
		c.PutInt(chunk)
	}
	if err := c.EndMessage(); err != nil {
		return err
	}
	if size == 0 {
		c.PutInt(emptyFile)
	}
	return c.out.err
}

// putPieces reads straight into the packet.
func (c *Conn) putPieces(r io.Reader, size int64) error {
	o := &c.out
	packet := o.packet
	if packet == defaultPacket {
		o.packet = fileChunk
	}
	o.keep = true
	defer func() {
		o.packet, o.keep = packet, false
		o.reset()
	}()
	for size > 0 {
		for piece := min(size, fileChunk); piece > 0; {
			if len(o.buf) > 0 {
				c.send("PutFile", 0)
			}
			c.room(int(piece))
			n := int(min(piece, int64(c.free())))
			o.buf = slices.Grow(o.buf, n+tagSize)[:o.head+n]
			if _, err := io.ReadFull(r, o.buf[o.head:]); err != nil {
				return c.shortFile(err, size)
			}
			piece -= int64(n)
			size -= int64(n)
		}
		if err := c.EndMessage(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) putRaw(r io.Reader, size int64) error {
	for size > 0 {
		if err := c.arm(c.nc.SetWriteDeadline); err != nil {
			return c.fail("PutFile", err)
		}
		src := &readErr{r: r}
		n, err := io.CopyN(c.nc, src, min(size, rawChunk))
		size -= n
		switch {
		case src.err != nil && err != nil:
			return c.shortFile(src.err, size)
		case err != nil:
			return c.fail("PutFile", err)
		}
	}
	return nil
}

// readErr remembers whether the source of a copy failed.
type readErr struct {
	r   io.Reader
	err error
}

func (r *readErr) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err != nil {
		r.err = err
	}
	return n, err
}

func (c *Conn) shortFile(err error, left int64) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the file is shorter than announced, %d bytes before its end: %w", left, io.ErrUnexpectedEOF)
	}
	return errs.E("cedar.PutFile", errs.Broken, c.peer, err)
}

// GetFile receives one file into w and returns its size. A file larger than
// limit, if that is not negative, is refused before anything of it is taken,
// and the stream cannot go on. If w fails the rest of the file is received and
// dropped: the stream goes on (Broken is false), and the error of w comes
// back. EndOfMessage must follow, or more getters.
func (c *Conn) GetFile(ctx context.Context, w io.Writer, limit int64) (int64, error) {
	defer c.Bind(ctx)()
	size, err := c.Int()
	chunk := int64(rawChunk)
	if err == nil && c.aes != nil {
		chunk, err = c.Int()
	}
	if err == nil {
		err = c.EndOfMessage()
	}
	switch {
	case err != nil:
		return 0, err
	case size < 0:
		return 0, c.breakOff(c.malformed("GetFile", "the size of a file is negative"))
	case limit >= 0 && size > limit:
		return 0, c.breakOff(c.beyond("GetFile", fmt.Sprintf("file of %d bytes, the limit is %d", size, limit)))
	case size > 0 && (chunk < 1 || chunk > maxChunk):
		return 0, c.breakOff(c.malformed("GetFile", fmt.Sprintf("pieces of %d bytes, want 1 to %d", chunk, maxChunk)))
	case size == 0:
		n, err := c.Int()
		if err == nil && n != emptyFile {
			err = c.breakOff(c.malformed("GetFile", "an empty file has the wrong mark"))
		}
		return 0, err
	}
	sink := &fileSink{w: w}
	if c.aes != nil {
		err = c.getPieces(sink, size)
	} else {
		err = c.getRaw(sink, size)
	}
	if err != nil {
		return sink.n, err
	}
	c.in.fileDone = true
	if sink.err != nil {
		return sink.n, errs.E("cedar.GetFile", errs.KindOf(sink.err), c.peer, fmt.Errorf("writing the file: %w", sink.err))
	}
	return size, nil
}

// breakOff ends reading for good.
func (c *Conn) breakOff(err error) error {
	c.DiscardMessage()
	c.in.err = err
	return err
}

// Broken reports whether the stream cannot go on in one of its directions.
func (c *Conn) Broken() bool { return c.in.err != nil || c.out.err != nil }

// fileSink writes until that fails, and drops the rest.
type fileSink struct {
	w   io.Writer
	n   int64
	err error
}

func (s *fileSink) write(b []byte) {
	if s.err == nil {
		var n int
		n, s.err = s.w.Write(b)
		s.n += int64(n)
	}
}

func (c *Conn) getPieces(sink *fileSink, size int64) error {
	in := &c.in
	in.keep = true
	defer func() { in.keep = false }()
	for size > 0 {
		if err := c.begin("GetFile"); err != nil {
			return err
		}
		piece := in.buf[in.pos:in.end]
		if int64(len(piece)) > size {
			return c.breakOff(c.malformed("GetFile", "a file is longer than announced"))
		}
		sink.write(piece)
		size -= int64(len(piece))
		in.pos = in.end
		in.open = false
	}
	return nil
}

func (c *Conn) getRaw(sink *fileSink, size int64) error {
	in := &c.in
	buf := make([]byte, min(size, rawChunk))
	for size > 0 {
		if n := min(int64(in.rawEnd-in.raw), size); n > 0 {
			sink.write(in.buf[in.raw : in.raw+int(n)])
			in.raw += int(n)
			size -= n
			continue
		}
		if err := c.arm(c.nc.SetReadDeadline); err != nil {
			return c.breakOff(c.fail("GetFile", err))
		}
		part := buf[:min(int64(len(buf)), size)]
		n, err := io.ReadFull(c.nc, part)
		sink.write(part[:n])
		size -= int64(n)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return c.breakOff(c.fail("GetFile", err))
		}
	}
	return nil
}
