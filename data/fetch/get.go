package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fspda/internal/wholefile"
)

// suffix marks an incomplete file.
const suffix = ".partial"

// tries is the number of times that an interrupted download is continued, as long as each attempt
// receives data.
const tries = 10

// StatusError reports an HTTP status other than success.
type StatusError struct {
	URL    string
	Status string // status line of the answer: "404 Not Found"
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("fetch: %s: the server answers %s: choose another address with --url, or copy the file "+
		"there by hand", e.URL, e.Status)
}

// Fetch downloads missing files of the set into the folder dir, which it creates. For each file it
// tries every base, the given ones or else the set's own, until one has it. It returns the names of
// the downloaded files.
func (s Set) Fetch(ctx context.Context, dir string, bases []string, progress Progress) (fetched []string, err error) {
	if len(bases) == 0 {
		bases = s.Bases
	}
	g := getter{client: client(), pause: 500 * time.Millisecond, progress: orNone(progress), token: s.token}
	for _, f := range s.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		err := f.verify(ctx, path, g.progress)
		if errors.Is(err, os.ErrNotExist) {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return nil, fmt.Errorf("fetch: %w", err)
			}
			err = g.fetchFromAny(ctx, f, path, bases)
			fetched = append(fetched, f.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	return fetched, nil
}

// client times out if a server does not respond, but not on a slow transfer.
func client() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = 30 * time.Second
	t.DisableCompression = true // files must arrive unmodified
	return &http.Client{Transport: t}
}

type getter struct {
	client   *http.Client
	pause    time.Duration // before a download is continued
	progress Progress
	token    string
}

// fetchFromAny tries the bases in turn.
func (g *getter) fetchFromAny(ctx context.Context, f File, path string, bases []string) error {
	var all []error
	for _, base := range bases {
		err := g.get(ctx, f, path, strings.TrimSuffix(base, "/")+"/"+escape(f.Name))
		if err == nil || ctx.Err() != nil {
			return err
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// get downloads a file, verifies it and renames it to its final name.
func (g *getter) get(ctx context.Context, f File, path, url string) error {
	for try := 1; ; try++ {
		before := sizeOf(path + suffix)
		err := g.resume(ctx, f, path+suffix, url)
		if err == nil {
			break
		}
		var status *StatusError
		if ctx.Err() != nil {
			return ctx.Err()
		}
		now := sizeOf(path + suffix)
		if errors.As(err, &status) || errors.Is(err, errTooLong) || isLocal(err) || now <= before || try == tries {
			if now == 0 {
				_ = os.Remove(path + suffix) // it may not exist
			} else if !errors.As(err, &status) {
				return fmt.Errorf("%w; %d of %d bytes are kept, and the next call goes on from there", err, now, f.Size)
			}
			return err
		}
		select {
		case <-time.After(g.pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := f.verify(ctx, path+suffix, g.progress); err != nil {
		if sum, ok := errors.AsType[*ChecksumError](err); ok {
			_ = os.Remove(path + suffix) // it is unusable
			sum.Path, sum.Hint = url, "the server has another file, or it was damaged on its way; call again, or "+
				"choose another address with --url"
		}
		return err
	}
	if err := wholefile.Rename(path+suffix, path); err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	return nil
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// isLocal reports disk errors, which a retry cannot fix.
func isLocal(err error) bool {
	var p *os.PathError
	return errors.As(err, &p)
}

var errTooLong = errors.New("more bytes than the file has")

// resume requests the missing part of a file and appends it. A server that cannot continue sends
// the file from the start.
func (g *getter) resume(ctx context.Context, f File, path, url string) error {
	have := sizeOf(path)
	if have > f.Size {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
		have = 0
	}
	if have == f.Size {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	authorize(req, g.token)
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	res, err := g.client.Do(req)
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	defer res.Body.Close() // read only: an error loses no data
	switch {
	case res.StatusCode == http.StatusOK:
		have = 0
	case res.StatusCode == http.StatusPartialContent && strings.HasPrefix(res.Header.Get("Content-Range"),
		fmt.Sprintf("bytes %d-", have)):
	case res.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		_ = os.Remove(path) // it is longer than the server's file
		return &StatusError{URL: url, Status: res.Status + ": its file is shorter than it should be"}
	default:
		return &StatusError{URL: url, Status: res.Status}
	}
	return g.save(ctx, f, path, url, have, res.Body)
}

// save appends the response after the first have bytes.
func (g *getter) save(ctx context.Context, f File, path, url string, have int64, from io.Reader) (err error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	defer func() {
		if e := out.Close(); err == nil && e != nil {
			err = fmt.Errorf("fetch: %w", e)
		}
	}()
	if err := out.Truncate(have); err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	if _, err := out.Seek(have, io.SeekStart); err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	w := &progressReader{ctx: ctx, r: io.LimitReader(from, f.Size-have+1), done: have,
		report: func(n int64) { g.progress(f.Name, n, f.Size) }}
	n, err := io.Copy(out, w)
	switch {
	case err != nil:
		return fmt.Errorf("fetch: %s: %w", url, err)
	case have+n > f.Size:
		_ = out.Truncate(0) // it is another file
		return fmt.Errorf("fetch: %s: %w, %d", url, errTooLong, f.Size)
	case have+n < f.Size:
		return fmt.Errorf("fetch: %s: %w after %d of %d bytes", url, io.ErrUnexpectedEOF, have+n, f.Size)
	}
	if err := out.Sync(); err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	return nil
}
