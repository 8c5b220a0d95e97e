package web

import (
	"cmp"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options configures a [Server].
type Options struct {
	Dir      string   // the folder of runs; nothing outside it is read, not even through links
	Only     string   // the only run to show; empty for all
	Live     *LiveRun // a run in this process; nil for none
	Token    string   // required to control the live run; empty disables control
	Loopback bool     // only this machine can connect: refuse requests for other host names
	// Share limits the processor time of requests, as a fraction of all processors; 0 is no limit.
	// Requests beyond it wait. With [Serve] it covers connections too.
	Share float64
}

// Server shows runs to browsers: those in a folder, as their files grow, and one in this process.
// It reads only on request and blocks nothing, so neither many nor slow clients can delay a run.
// Serve it with [Serve].
type Server struct {
	opt         Options
	root        *runTree
	runs        *runList
	tailers     *tailers
	snapshotter *snapshotter // nil without a live run
	streams     chan struct{}
	connections *budget // a third of Share each, so that a flood of one kind does not block the others
	requests    *budget
	events      *budget // budget of events in streams
	mux         http.Handler
}

// maxStreams is the number of clients that can follow runs at a time.
const maxStreams = 64

// NewServer returns a server. The caller must close it.
func NewServer(opt Options) (*Server, error) {
	root, err := openTree(opt.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{opt: opt, root: root, runs: &runList{root: root, only: opt.Only, live: opt.Live},
		tailers: &tailers{root: root, runs: map[string]*tailer{}}, streams: make(chan struct{}, maxStreams),
		connections: newBudget(opt.Share / 3), requests: newBudget(opt.Share / 3), events: newBudget(opt.Share / 3)}
	if opt.Live != nil {
		s.snapshotter = &snapshotter{live: opt.Live}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.asset)
	mux.HandleFunc("GET /assets/{name}", s.asset)
	mux.HandleFunc("GET /api/runs", s.listRuns)
	mux.HandleFunc("GET /api/run", s.describe)
	mux.HandleFunc("GET /api/events", s.follow)
	mux.HandleFunc("POST /api/steer", s.control)
	mux.HandleFunc("GET /files/", s.file)
	s.mux = http.NewCrossOriginProtection().Handler(mux)
	return s, nil
}

func (s *Server) Close() error { return s.root.Close() }

// Readers returns the number of clients that follow runs.
func (s *Server) Readers() int { return len(s.streams) }

// contentPolicy restricts the page to resources of this server.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if s.opt.Loopback && !localName(r.Host) {
		http.Error(w, "this server accepts requests for localhost only", http.StatusMisdirectedRequest)
		return
	}
	switch path := r.URL.Path; { // responses that are streams
	case path == "/api/events", path == "/api/steer", strings.HasPrefix(path, "/files/"):
		if s.requests.wait(r.Context(), requestCost) {
			s.mux.ServeHTTP(w, r)
		}
		return
	}
	b := &bufferedResponse{header: h, status: http.StatusOK}
	if s.requests.do(r.Context(), requestCost, func() { s.mux.ServeHTTP(b, r) }) {
		s.requests.charge(sendCost(b.body.Len()), time.Now())
		w.WriteHeader(b.status)
		_, _ = w.Write(b.body.Bytes()) // the client may have disconnected
	}
}

// localName reports whether a host name is one of this machine. The check stops DNS rebinding:
// another site's name that resolves to 127.0.0.1 would share our origin.
func localName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func (s *Server) listRuns(w http.ResponseWriter, _ *http.Request) {
	live := ""
	if s.opt.Live != nil {
		live = s.opt.Live.Run
	}
	runs, varied := s.runs.listVaried(time.Now())
	writeJSON(w, map[string]any{"runs": append([]RunInfo{}, runs...), "varied": append([]string{}, varied...),
		"live": live, "steer": s.opt.Live != nil && s.opt.Token != "", "folder": clean(s.opt.Dir)})
}

// runOf returns the run that a request names, or responds with an error.
func (s *Server) runOf(w http.ResponseWriter, r *http.Request) (string, bool) {
	run := r.URL.Query().Get("run")
	if !s.runs.has(run, time.Now()) {
		http.Error(w, "unknown run", http.StatusNotFound)
		return "", false
	}
	return run, true
}

// maxEdgesSent is the number of edges of a graph that are sent to a browser.
const maxEdgesSent = 20_000

// describe serves the static description of a run.
func (s *Server) describe(w http.ResponseWriter, r *http.Request) {
	name, ok := s.runOf(w, r)
	if !ok {
		return
	}
	run := &run{name: name}
	var problems []string
	read := func(file string) ([]byte, error) { return readFile(s.root, runFile(name, file)) }
	for _, err := range run.readFiles("", read) {
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	sh := cmp.Or(run.shards, &shards{})
	all := len(sh.Edges)
	if all > maxEdgesSent {
		sh.Edges = sh.Edges[:maxEdgesSent]
	}
	writeJSON(w, map[string]any{
		"run": name, "sentence": run.sentence(s.runs.goesOn(name, time.Now())), "config": clean(run.yaml),
		"command":    s.command(run),
		"accounting": run.accounting(), "evaluated_agents": pointer(run.evaluated()), "graph": run.setting("graph"),
		"classes": sh.Classes, "agents": sh.Agents, "edges": sh.Edges, "edge_count": all,
		"environment": run.environment(), "problems": problems, "files": s.filesOf(name),
		"eval_points": pointer(run.config.number("eval_points")),
		"eval_epochs": pointer(run.config.number("eval_epochs")),
	})
}

// command returns the command that repeats the run: the recorded one, or one with its
// configuration.
func (s *Server) command(r *run) string {
	if c := r.summary.text("command"); c != "" {
		return c
	}
	if l := s.opt.Live; l != nil && l.Run == r.name && l.Command != "" {
		return clean(l.Command)
	}
	if r.yaml == "" {
		return ""
	}
	return clean("fspda train -c " + filepath.Join(s.opt.Dir, filepath.FromSlash(r.name), "config.yaml") +
		" --out ANOTHER")
}

// shown maps the files of a run that browsers may read to their media types.
var shown = map[string]string{
	"report.html": "text/html; charset=utf-8", "report.md": "text/markdown; charset=utf-8",
	"config.yaml": "text/plain; charset=utf-8", "metrics.csv": "text/csv; charset=utf-8",
	"metrics.jsonl": "application/jsonl; charset=utf-8", "summary.json": "application/json",
	"shards.json": "application/json",
	"links.yaml":  "text/plain; charset=utf-8", "samples.jsonl": "application/jsonl; charset=utf-8",
}

// filesOf lists the files of a run that browsers may read.
func (s *Server) filesOf(run string) []string {
	names := slices.Sorted(maps.Keys(shown))
	return slices.DeleteFunc(names, func(name string) bool { return !s.runs.regular(runFile(run, name)) })
}

// file serves a file of a run: /files/RUN/NAME.
func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	run, name := ".", strings.TrimPrefix(r.URL.Path, "/files/")
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		run, name = name[:i], name[i+1:]
	}
	kind, ok := shown[name]
	if !ok || !s.runs.has(run, time.Now()) {
		http.NotFound(w, r)
		return
	}
	f, info, err := openRegular(s.root, runFile(run, name))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox")
	http.ServeContent(&meteredWriter{ResponseWriter: w, ctx: r.Context(), budget: s.requests, start: time.Now()}, r, "",
		info.ModTime(), f)
}

func writeJSON(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "encode the response: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // the client may have disconnected
}
