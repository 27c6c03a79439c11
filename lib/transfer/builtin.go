// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

const (
	maxRedirects  = 20
	maxDataURL    = 8 << 20
	builtinTries  = 3
	httpHeaderMax = 60 * time.Second // a server must answer within this
)

// builtin moves a batch by http, https and data.
func (p *Plugins) builtin(ctx context.Context, root *os.Root, b batch, upload bool, progress func(int64)) outcome {
	client := p.HTTP
	if client == nil {
		client = newClient()
		defer client.CloseIdleConnections()
	}
	var o outcome
	for _, item := range b.items {
		m := mover{ctx: ctx, client: client, root: root, outside: p.outside, progress: progress}
		began := time.Now()
		err := m.move(item, upload)
		ad := classad.NewAd()
		ad.SetString("TransferUrl", item.URL)
		ad.SetString("TransferFileName", item.Name)
		ad.SetString("TransferProtocol", methodOf(item.URL))
		ad.SetString("TransferType", map[bool]string{false: "download", true: "upload"}[upload])
		ad.SetString("TransferLocalMachineName", m.local)
		ad.SetString("TransferHostName", m.host)
		ad.SetInt("TransferStartTime", began.Unix())
		ad.SetInt("TransferEndTime", time.Now().Unix())
		ad.SetReal("ConnectionTimeSeconds", time.Since(began).Seconds())
		ad.SetInt("TransferFileBytes", m.n)
		ad.SetInt("TransferTotalBytes", m.n)
		ad.SetInt("TransferTries", int64(m.tries))
		if m.status != 0 {
			ad.SetInt("TransferHTTPStatusCode", int64(m.status))
		}
		ad.SetBool("TransferSuccess", err == nil)
		if err != nil {
			ad.SetString("TransferError", oneLine(err.Error()))
			o.result, o.subcode = pluginError, 1<<8
			o.judge(ad, 1, "built-in")
		}
		o.ads = append(o.ads, ad)
		if ctx.Err() != nil {
			break
		}
	}
	return o
}

func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   30 * time.Second,
			ResponseHeaderTimeout: httpHeaderMax,
			ExpectContinueTimeout: time.Second,
			DisableCompression:    true, // bytes as they are
			MaxIdleConnsPerHost:   4,
			ForceAttemptHTTP2:     true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) >= maxRedirects {
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			if s := r.URL.Scheme; s != "http" && s != "https" {
				return fmt.Errorf("redirect to a URL of another kind: %s", s)
			}
			return nil
		},
	}
}

// mover moves one file.
type mover struct {
	ctx      context.Context
	client   *http.Client
	root     *os.Root
	outside  Outside
	progress func(int64)
	n        int64
	tries    int
	status   int
	host     string
	local    string
}

func (m *mover) move(item urlItem, upload bool) error {
	if methodOf(item.URL) == "data" {
		m.tries = 1
		if upload {
			return errors.New("nothing can be stored at a data URL")
		}
		body, err := dataURL(item.URL)
		if err != nil {
			return err
		}
		return m.write(item.Name, strings.NewReader(body), int64(len(body)))
	}
	target := item.URL
	if i := strings.Index(target, "://"); i >= 0 {
		target = methodOf(item.URL) + target[i:] // of chtc+https only https counts
	}
	u, err := url.Parse(target)
	if err != nil {
		return errors.New("the URL cannot be parsed")
	}
	m.host = u.Hostname()
	for m.tries = 1; ; m.tries++ {
		m.n, m.status = 0, 0
		again, err := m.http(u.String(), item.Name, upload)
		if err == nil || !again || m.tries >= builtinTries || m.ctx.Err() != nil {
			return err
		}
	}
}

// http moves a file by one request, and tells whether another one may fare
// better.
func (m *mover) http(target, name string, upload bool) (again bool, err error) {
	method := http.MethodGet
	var body io.Reader
	size := int64(0)
	if upload {
		method = http.MethodPut
		f, err := m.open(name)
		if err != nil {
			return false, cause(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return false, cause(err)
		}
		if !info.Mode().IsRegular() {
			return false, errPlain
		}
		size = info.Size()
		body = io.LimitReader(f, size)
		if size == 0 {
			body = http.NoBody
		}
	}
	ctx, stop := context.WithCancelCause(m.ctx)
	defer stop(nil)
	idle := time.AfterFunc(defaultIdleTimeout, func() {
		stop(fmt.Errorf("nothing moved for %d seconds", int(defaultIdleTimeout/time.Second)))
	})
	defer idle.Stop()
	moved := func(n int64) {
		idle.Reset(defaultIdleTimeout)
		m.n += n
		if m.progress != nil {
			m.progress(n)
		}
	}
	if body != nil && body != http.NoBody {
		body = &dataSource{r: body, progress: moved}
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return false, err
	}
	if upload {
		req.ContentLength = size
	}
	resp, err := m.client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the URL may hold a secret
		}
		if c := context.Cause(ctx); c != nil {
			err = c
		}
		return true, err
	}
	defer resp.Body.Close()
	m.status = resp.StatusCode
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		again := resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests
		return again, statusError(resp.StatusCode)
	}
	if upload {
		return false, nil
	}
	err = m.save(name, &dataSource{r: resp.Body, progress: moved}, resp.ContentLength)
	if c := context.Cause(ctx); c != nil && err != nil {
		err = c
	}
	var netErr net.Error
	again = errors.As(err, &netErr) || errors.Is(err, io.ErrUnexpectedEOF)
	return again, err
}

// open opens a file that is stored.
func (m *mover) open(name string) (*os.File, error) {
	switch {
	case !filepath.IsAbs(name):
		return m.root.Open(name)
	case m.outside == nil:
		return nil, errNotPermitted
	}
	return m.outside(name)
}

// statusError is a refusal by a server, in the words of the curl plugin.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("The requested URL returned error: %d (%s)", int(e), http.StatusText(int(e)))
}

// write is save that counts for itself.
func (m *mover) write(name string, r io.Reader, size int64) error {
	m.n = size
	if m.progress != nil {
		m.progress(size)
	}
	return m.save(name, r, size)
}

// save writes a file below the root, in place of one that is there.
func (m *mover) save(name string, r io.Reader, size int64) error {
	if err := m.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cause(err)
	}
	f, err := m.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return cause(err)
	}
	n, err := io.Copy(f, r)
	if err == nil && size >= 0 && n != size {
		err = io.ErrUnexpectedEOF
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = m.root.Remove(name) // half a file is worse than none
	}
	return err
}

// dataURL returns what a data URL holds.
func dataURL(u string) (string, error) {
	if len(u) > maxDataURL {
		return "", errors.New("the data URL is too long")
	}
	_, rest, _ := strings.Cut(u, ":")
	rest = strings.TrimPrefix(rest, "//")
	head, body, ok := strings.Cut(rest, ",")
	if !ok {
		return "", errors.New("the data URL has no comma")
	}
	body, err := url.PathUnescape(body)
	if err != nil {
		return "", fmt.Errorf("the data URL cannot be decoded: %w", err)
	}
	if !strings.HasSuffix(strings.ToLower(head), ";base64") {
		return body, nil
	}
	b, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return "", fmt.Errorf("the data URL cannot be decoded: %w", err)
	}
	return string(b), nil
}
