package data

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"fspda/internal/bounded"
)

// treeFile is one file of a folder, or of an archive.
type treeFile struct {
	name string // relative to the folder or archive, with slashes
	path string // path that messages name
	read func() ([]byte, error)
}

const (
	maxTreeFile  = 64 << 20 // bytes of one file: limits the allocation for a damaged header
	maxTreeBytes = 1 << 30  // most bytes of an unpacked archive
)

// readTree lists the files of a folder recursively, or of a tar archive, plain or gzipped. It reads
// an archive into memory.
func readTree(path string) ([]treeFile, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return walkFolder(path)
	}
	f, err := bounded.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: an error loses no data
	content, err := uncompressed(path, f)
	if err != nil {
		return nil, err
	}
	return readArchive(path, content)
}

func walkFolder(root string) ([]treeFile, error) {
	var files []treeFile
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		files = append(files, treeFile{filepath.ToSlash(name), path, func() ([]byte, error) { return readFile(path) }})
		return err
	})
	return files, err
}

// readFile is os.ReadFile with a size limit.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxTreeFile {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", path, info.Size(), maxTreeFile)
	}
	return bounded.File(path, maxTreeFile)
}

func readArchive(path string, r io.Reader) ([]treeFile, error) {
	var files []treeFile
	total := int64(0)
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, archiveError(path, len(files), err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if total += h.Size; h.Size > maxTreeFile || total > maxTreeBytes {
			return nil, &FormatError{Path: path, Got: fmt.Sprintf("%s of %d bytes after %d files", h.Name, h.Size,
				len(files)), Want: fmt.Sprintf("files of at most %d bytes, %d together", maxTreeFile, maxTreeBytes),
				Hint: "this is not the expected data set"}
		}
		var content bytes.Buffer // grows with the content read, not with the header's claim
		if _, err := io.Copy(&content, t); err != nil {
			return nil, archiveError(path, len(files), err)
		}
		data := content.Bytes()
		files = append(files, treeFile{strings.TrimPrefix(h.Name, "./"), path + ": " + h.Name,
			func() ([]byte, error) { return data, nil }})
	}
}

func archiveError(path string, files int, err error) error {
	return &FormatError{Path: path, Got: fmt.Sprintf("damage after %d files", files),
		Want: "an intact tar archive", Hint: err.Error() + "; fetch it again", Err: err}
}

func imageName(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".jpg", ".jpeg", ".png":
		return true
	}
	return false
}
