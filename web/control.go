package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
)

// TokenHeader is the request header that carries the token. Pages of other origins cannot set it:
// that takes CORS permission, which the server does not give.
const TokenHeader = "X-Fspda-Token"

// actions are the commands that a live run accepts.
var actions = []string{"pause", "resume", "checkpoint", "stop"}

// NewToken returns a random token.
func NewToken() string { return rand.Text() }

// control passes an action to the live run, if the request carries the token.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	if s.opt.Live == nil || s.opt.Token == "" {
		http.Error(w, "this server controls no run", http.StatusNotFound)
		return
	}
	got, want := sha256.Sum256([]byte(r.Header.Get(TokenHeader))), sha256.Sum256([]byte(s.opt.Token))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		http.Error(w, "the token is missing or wrong: it was printed in the terminal that started the run",
			http.StatusForbidden)
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "the content type must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	var order struct {
		Run    string `json:"run"`
		Action string `json:"action"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&order); err != nil {
		http.Error(w, `the body must be {"run":…,"action":…}`, http.StatusBadRequest)
		return
	}
	if order.Run != s.opt.Live.Run || !slices.Contains(actions, order.Action) {
		http.Error(w, "unknown run, or unknown action: "+clean(order.Action), http.StatusBadRequest)
		return
	}
	if err := s.opt.Live.Control(order.Action); err != nil {
		http.Error(w, clean(err.Error()), http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
