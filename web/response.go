package web

import (
	"bytes"
	"context"
	"net/http"
	"time"
)

// bufferedResponse is a response that is built in memory, so that its handler never waits for the
// client.
type bufferedResponse struct {
	header      http.Header
	status      int
	wroteHeader bool
	body        bytes.Buffer
}

func (r *bufferedResponse) Header() http.Header { return r.header }

func (r *bufferedResponse) WriteHeader(status int) {
	if !r.wroteHeader {
		r.status, r.wroteHeader = status, true
	}
}

func (r *bufferedResponse) Write(b []byte) (int, error) {
	r.wroteHeader = true
	return r.body.Write(b)
}

// minReadRate is the least rate, in bytes a second, at which a client must read a file to keep its
// connection.
const minReadRate = 64 << 10

// meteredWriter charges a budget for each write and extends the write deadline by the time that a
// client at minReadRate needs.
type meteredWriter struct {
	http.ResponseWriter
	ctx    context.Context
	budget *budget
	start  time.Time // start of the response, later by the time spent waiting for the budget
	sent   int
}

func (m *meteredWriter) Write(b []byte) (int, error) {
	begin := time.Now()
	if !m.budget.wait(m.ctx, sendCost(len(b))) {
		return 0, m.ctx.Err()
	}
	m.start = m.start.Add(time.Since(begin))
	m.sent += len(b)
	allowed := responseTimeout + time.Duration(float64(m.sent)/minReadRate*float64(time.Second))
	// the writers of some tests have no deadlines
	_ = http.NewResponseController(m.ResponseWriter).SetWriteDeadline(m.start.Add(allowed))
	return m.ResponseWriter.Write(b)
}
