package web

import (
	"bytes"
	"context"
	"net/http"
	"time"
)

// draft is an answer that is made in memory, so that making it waits for nobody.
type draft struct {
	header http.Header
	status int
	fixed  bool // the status was said
	body   bytes.Buffer
}

func (d *draft) Header() http.Header { return d.header }

func (d *draft) WriteHeader(status int) {
	if !d.fixed {
		d.status, d.fixed = status, true
	}
}

func (d *draft) Write(b []byte) (int, error) {
	d.fixed = true
	return d.body.Write(b)
}

// slowestReader is what a reader of a file must take a second, in bytes, to keep the connection.
const slowestReader = 64 << 10

// paidWriter pays for what it sends, piece by piece, and gives a reader time in proportion.
type paidWriter struct {
	http.ResponseWriter
	ctx    context.Context
	budget *budget
	begun  time.Time
	sent   int
}

func (p *paidWriter) Write(b []byte) (int, error) {
	waits := time.Now()
	if !p.budget.spend(p.ctx, costOf(len(b))) {
		return 0, p.ctx.Err()
	}
	p.begun = p.begun.Add(time.Since(waits)) // that was not the reader's fault
	p.sent += len(b)
	allowed := answerWithin + time.Duration(float64(p.sent)/slowestReader*float64(time.Second))
	// not every test server has deadlines
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(p.begun.Add(allowed))
	return p.ResponseWriter.Write(b)
}
