package link

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fspda/dist/discover"
	"fspda/internal/bounded"
)

// Credentials authenticate nodes to each other. The zero value authenticates nobody.
type Credentials struct {
	// Agents is the configuration of connections between agents, and between their NATS servers.
	// Both ends present a certificate of the run.
	Agents *tls.Config
	// Client is the configuration of a connection to a NATS cluster.
	Client *tls.Config

	agent *agentCert // Set by ReadCredentials.
}

// A run has its own certificate authority. It signs one certificate per agent, whose only name is
// fspda://RUN/agent/RANK: agents authenticate by rank, not by the address of a machine.
const (
	authorityCert = "ca.pem"
	authorityKey  = "ca-key.pem"
)

// WriteCredentials creates a certificate authority for a run and certificates for its agents in a
// folder, valid for the given time: ca.pem, and agent-000.pem with agent-000-key.pem and so on.
// Each machine needs ca.pem and the two files of its own agent. The authority's key, ca-key.pem, is
// needed only for further agents and should not be copied. An existing authority is reused.
func WriteCredentials(dir, run string, agents int, valid time.Duration) error {
	if err := discover.CheckRun(run); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ca, key, err := authority(dir, run, valid)
	if err != nil {
		return err
	}
	for i := range agents {
		if err := writeAgentCert(dir, run, i, valid, ca, key); err != nil {
			return err
		}
	}
	return nil
}

// authority reads the authority in a folder, or creates one.
func authority(dir, run string, valid time.Duration) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, authorityCert), filepath.Join(dir, authorityKey))
	if err == nil {
		key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
		if !ok || pair.Leaf.Subject.CommonName != authorityName(run) {
			return nil, nil, fmt.Errorf("link: %s holds the authority of %q, not of %q: choose another folder", dir,
				clip(pair.Leaf.Subject.CommonName), authorityName(run))
		}
		if until := pair.Leaf.NotAfter; time.Now().After(until) {
			return nil, nil, fmt.Errorf("link: the authority in %s was valid until %v: choose another folder, or "+
				"remove %s and %s there, and give every agent its new certificate", dir, until, authorityCert,
				authorityKey)
		}
		return pair.Leaf, key, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("link: the authority in %s cannot be read: %w", dir, err)
	}
	return issue(dir, authorityCert, authorityKey, valid, &x509.Certificate{
		Subject: pkix.Name{CommonName: authorityName(run)}, IsCA: true, BasicConstraintsValid: true,
		MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
}

// clockError is the largest time by which the clock of a machine may be behind.
const clockError = 30 * 24 * time.Hour

// issue completes a certificate, has it signed by an authority, or by itself without one, and
// writes it with its key.
func issue(dir, cert, private string, valid time.Duration, text, ca *x509.Certificate, by *ecdsa.PrivateKey) (
	*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if ca == nil {
		ca, by = text, key
	}
	var serial [16]byte
	rand.Read(serial[:]) // never fails
	serial[0] &= 0x7f
	text.SerialNumber = new(big.Int).SetBytes(serial[:])
	text.NotBefore, text.NotAfter = time.Now().Add(-clockError), time.Now().Add(valid)
	der, err := x509.CreateCertificate(rand.Reader, text, ca, &key.PublicKey, by)
	if err != nil {
		return nil, nil, err
	}
	if err := writePair(dir, cert, private, der, key); err != nil {
		return nil, nil, err
	}
	made, err := x509.ParseCertificate(der)
	return made, key, err
}

// WriteServerCredentials makes the certificate of a NATS server that a run uses, signed by the
// run's authority in a folder: nats-server.pem and nats-server-key.pem. hosts are the names and IP
// addresses under which agents reach the server.
func WriteServerCredentials(dir, run string, hosts []string, valid time.Duration) error {
	ca, by, err := authority(dir, run, valid)
	if err != nil {
		return err
	}
	text := &x509.Certificate{Subject: pkix.Name{CommonName: "NATS server of " + run},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			text.IPAddresses = append(text.IPAddresses, ip)
		} else {
			text.DNSNames = append(text.DNSNames, host)
		}
	}
	_, _, err = issue(dir, "nats-server.pem", "nats-server-key.pem", valid, text, ca, by)
	return err
}

func authorityName(run string) string { return "fspda run " + run }

func writeAgentCert(dir, run string, rank int, valid time.Duration, ca *x509.Certificate, by *ecdsa.PrivateKey) error {
	cert, private := agentFiles(rank)
	_, _, err := issue(dir, cert, private, valid, &x509.Certificate{
		Subject: pkix.Name{CommonName: fmt.Sprintf("fspda agent %d", rank)}, URIs: []*url.URL{agentURI(run, rank)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, ca, by)
	return err
}

func agentURI(run string, rank int) *url.URL {
	return &url.URL{Scheme: "fspda", Host: run, Path: "/agent/" + strconv.Itoa(rank)}
}

func agentFiles(rank int) (cert, key string) {
	return fmt.Sprintf("agent-%03d.pem", rank), fmt.Sprintf("agent-%03d-key.pem", rank)
}

// writePair writes a certificate and its key. Only the owner may read the key.
func writePair(dir, cert, private string, der []byte, key *ecdsa.PrivateKey) error {
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	if err := os.WriteFile(filepath.Join(dir, private), text, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, cert), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		0o644)
}

// ReadCredentials reads the files that WriteCredentials made for one agent.
func ReadCredentials(dir, run string, rank int) (Credentials, error) {
	cert, key := agentFiles(rank)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, cert), filepath.Join(dir, key))
	if err != nil {
		return Credentials{}, fmt.Errorf("link: the certificate of agent %d in %s cannot be read: %w: make it with "+
			"fspda certs, and copy ca.pem, %s and %s to this machine", rank, dir, err, cert, key)
	}
	text, err := bounded.File(filepath.Join(dir, authorityCert), 1<<20)
	if err != nil {
		return Credentials{}, fmt.Errorf(
			"link: the authority of the run cannot be read: %w: copy ca.pem to this machine", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return Credentials{}, fmt.Errorf("link: %s holds no certificate", filepath.Join(dir, authorityCert))
	}
	if err := checkAgentCert(pair.Leaf, pool, run, &rank); err != nil {
		return Credentials{}, fmt.Errorf(
			"link: the certificate of agent %d in %s: %w: make it with fspda certs --run %s", rank, dir, err, run)
	}
	return Credentials{Agents: mutualTLS(pair, pool, run, nil), Client: clusterTLS(pair, text),
		agent: &agentCert{pair, pool, run}}, nil
}

// agentCert is an agent's certificate and the authority with which it checks others.
type agentCert struct {
	pair tls.Certificate
	pool *x509.CertPool
	run  string
}

// linkTo returns the TLS configuration of a connection to the agent of this rank.
func (c Credentials) linkTo(rank int) *tls.Config {
	if c.agent == nil {
		return c.Agents.Clone()
	}
	return mutualTLS(c.agent.pair, c.agent.pool, c.agent.run, &rank)
}

// rankOf returns the rank of the agent at the other end of a connection. It is known only with the
// credentials of ReadCredentials.
func (c Credentials) rankOf(s tls.ConnectionState) (rank int, ok bool) {
	if c.agent == nil || len(s.PeerCertificates) == 0 || len(s.PeerCertificates[0].URIs) != 1 {
		return 0, false
	}
	rank, err := strconv.Atoi(path.Base(s.PeerCertificates[0].URIs[0].Path))
	return rank, err == nil
}

// clusterTLS returns the TLS configuration for connections to an existing cluster. The cluster's
// certificate must match its host name, signed by the run's authority or one that this machine
// trusts.
func clusterTLS(pair tls.Certificate, authority []byte) *tls.Config {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // a machine without trusted authorities
	}
	roots.AppendCertsFromPEM(authority)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: roots}
}

// mutualTLS returns a TLS 1.3 configuration in which both ends present a certificate of the run,
// for a given rank if rank is not nil. The library's own verification of host names is off, since
// addresses do not matter; VerifyConnection replaces it at both ends.
func mutualTLS(pair tls.Certificate, pool *x509.CertPool, run string, rank *int) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: pool,
		ClientCAs:  pool,
		ClientAuth: tls.RequireAndVerifyClientCert, InsecureSkipVerify: true, SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("link: the other end presents no certificate")
			}
			return checkAgentCert(s.PeerCertificates[0], pool, run, rank)
		}}
}

// checkAgentCert checks that a certificate is signed by the authority, is valid now, and names an
// agent of the run. If rank is not nil, the agent must have this rank.
func checkAgentCert(cert *x509.Certificate, pool *x509.CertPool, run string, rank *int) error {
	_, err := cert.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return fmt.Errorf("it is not valid at the time of this machine's clock: %w", err)
	}
	if err != nil {
		return fmt.Errorf("it is not signed by this run's authority: %w", err)
	}
	if len(cert.URIs) != 1 {
		return fmt.Errorf("it has %d names, expected fspda://%s/agent/RANK", len(cert.URIs), run)
	}
	name := cert.URIs[0].String()
	prefix := "fspda://" + run + "/agent/"
	number, ok := strings.CutPrefix(name, prefix)
	if _, err := strconv.Atoi(number); !ok || err != nil || rank != nil && name != agentURI(run, *rank).String() {
		return fmt.Errorf("it names %s, expected %sRANK", clip(name), prefix)
	}
	return nil
}
