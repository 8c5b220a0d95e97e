package link

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func credentials(t *testing.T, dir, run string, rank int) Credentials {
	t.Helper()
	c, err := ReadCredentials(dir, run, rank)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Agents with certificates of the same run connect. One without a certificate, or with one of
// another run or authority, is rejected.
func TestOnlyAgentsOfTheRunConnect(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for d, run := range map[string]string{dir: "test", other: "test2"} {
		if err := WriteCredentials(d, run, 3, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	m := make(mesh, 2)
	for i := range m {
		o := options(t, i, 3)
		o.TLS = credentials(t, dir, "test", i)
		if i > 0 {
			o.nats.Server.Join = []string{address(m[0])}
		}
		m[i] = open(t, o)
		if err := m[i].Start(nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	swap(t, m, 5, 0, 3)
	for name, tls := range map[string]Credentials{"none": {}, "of another run": credentials(t, other, "test2", 2)} {
		o := options(t, 2, 3)
		o.TLS, o.nats.Server.Join = tls, []string{address(m[0])}
		n := open(t, o)
		if err := n.Start(nil, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		if n.ConnectedPeers() != 0 || m[0].ConnectedPeers() != 1 {
			t.Errorf("a certificate %s: %d and %d are connected", name, n.ConnectedPeers(), m[0].ConnectedPeers())
		}
		n.Close()
	}
	swap(t, m, 5, 3, 10)
}

func TestCredentialsRefuse(t *testing.T) {
	dir := t.TempDir()
	if err := WriteCredentials(dir, "test", 1, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := WriteCredentials(dir, "test", 2, time.Hour); err != nil { // more agents, the same authority
		t.Fatal(err)
	}
	if from := credentials(t, dir, "test", 1).agent.pair.Leaf.NotBefore; time.Since(from) < 29*24*time.Hour {
		t.Errorf("a machine whose clock is behind by days cannot use a certificate that is valid from %v", from)
	}
	for name, err := range map[string]error{
		"another run":       errorOf(ReadCredentials(dir, "other", 0)),
		"no such agent":     errorOf(ReadCredentials(dir, "test", 7)),
		"another authority": WriteCredentials(dir, "other", 1, time.Hour),
		"a bad name":        WriteCredentials(t.TempDir(), "a/b", 1, time.Hour),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "agent-000-key.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a key is readable by others: %v %v", info, err)
	}
	late := t.TempDir()
	if err := WriteCredentials(late, "test", 1, -time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadCredentials(late, "test", 0); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired certificate: %v", err)
	}
	err := WriteCredentials(late, "test", 2, time.Hour)
	if err == nil || !strings.Contains(err.Error(), "valid until") {
		t.Errorf("certificates of an expired authority: %v", err)
	}
}

func errorOf[A any](_ A, err error) error { return err }
