package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

const defaultSSHPort = 22

// sshServer is a connection over SSH. It replaces go-git's SSH client, which does not limit the duration of a handshake and reads
// the SSH configuration of the user who runs the process.
type sshServer struct {
	client *ssh.Client
	input  io.WriteCloser
	output io.Reader
}

// connectSSH opens an SSH connection with the private key of the source's Secret, and starts git-upload-pack. All I/O on the
// connection fails after the deadline of the context.
func (s *gitSource) connectSSH(ctx context.Context, endpoint *transport.Endpoint, authorization v1alpha1.Authorization, folder string) (gitServer, error) {
	port := endpoint.Port
	if port == 0 {
		port = defaultSSHPort
	}

	address := net.JoinHostPort(endpoint.Host, strconv.Itoa(port))

	config, err := s.sshConfig(ctx, endpoint.User, address, authorization, folder)
	if err != nil {
		return nil, err
	}

	connection, err := (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, unreachable(endpoint.Host, err)
	}

	deadline, _ := ctx.Deadline()
	if err := connection.SetDeadline(deadline); err != nil {
		return nil, errors.Join(err, connection.Close())
	}

	handshaken, channels, requests, err := ssh.NewClientConn(connection, address, config)
	if err != nil {
		return nil, errors.Join(sshError(endpoint.Host, err), connection.Close())
	}

	server := &sshServer{client: ssh.NewClient(handshaken, channels, requests)}
	if err := server.start(endpoint.Path, s.options.Limits.CompressedBytes); err != nil {
		return nil, errors.Join(unreachable(endpoint.Host, err), server.Close())
	}

	return server, nil
}

// sshConfig returns a client configuration with the private key and the accepted host keys.
func (s *gitSource) sshConfig(ctx context.Context, user, address string, authorization v1alpha1.Authorization, folder string) (*ssh.ClientConfig, error) {
	if authorization.Secret.Name == "" {
		return nil, terminal("an SSH repository needs a Secret with the keys %s and %s: name it in source.git.auth.secret", privateKeyKey, knownHostsKey)
	}

	keys := []string{privateKeyKey, knownHostsKey}
	if authorization.InsecureSkipVerify {
		keys = keys[:1]
	}

	secret, err := s.objects.secret(ctx, authorization.Secret.Name, keys...)
	if err != nil {
		return nil, err
	}

	key, err := ssh.ParsePrivateKey(secret[privateKeyKey])
	if err != nil {
		return nil, transient("the Secret %s has no valid %s: it must be a PEM key without a passphrase", authorization.Secret.Name, privateKeyKey)
	}

	if user == "" {
		user = "git"
	}

	config := &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, Timeout: connectTimeout}
	if authorization.InsecureSkipVerify {
		config.HostKeyCallback = ssh.InsecureIgnoreHostKey() //nolint:gosec // the author of the Bundle asks for it

		return config, nil
	}

	// Package knownhosts reads known hosts only from files.
	file := filepath.Join(folder, "known_hosts")
	if err := os.WriteFile(file, secret[knownHostsKey], 0o600); err != nil {
		return nil, err
	}

	known, err := knownhosts.NewDB(file)
	if err != nil {
		return nil, transient("the Secret %s has no valid %s", authorization.Secret.Name, knownHostsKey)
	}

	config.HostKeyCallback, config.HostKeyAlgorithms = known.HostKeyCallback(), known.HostKeyAlgorithms(address)

	return config, nil
}

// sshError converts a failed handshake to a message for users.
func sshError(host string, err error) error {
	switch {
	case knownhosts.IsHostKeyChanged(err), knownhosts.IsHostUnknown(err):
		return transient("the host key of %s is not in %s of the Secret: check the key, then add it", host, knownHostsKey)
	case strings.Contains(err.Error(), "unable to authenticate"):
		return transient("%s rejects the key: correct %s in the Secret", host, privateKeyKey)
	default:
		return unreachable(host, err)
	}
}

// start runs git-upload-pack on the server, and limits the size of its output.
func (s *sshServer) start(repository string, bytes int64) error {
	session, err := s.client.NewSession()
	if err != nil {
		return err
	}

	if s.input, err = session.StdinPipe(); err != nil {
		return err
	}

	output, err := session.StdoutPipe()
	if err != nil {
		return err
	}

	const overhead = 1 << 20 // the protocol's own data
	s.output = io.LimitReader(output, bytes+bytes/100+overhead)

	return session.Start("git-upload-pack '" + strings.ReplaceAll(repository, "'", `'\''`) + "'")
}

// AdvertisedReferencesContext implements gitServer.
func (s *sshServer) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	advertised := packp.NewAdvRefs()
	err := advertised.Decode(s.output)

	switch {
	case errors.Is(err, packp.ErrEmptyInput), err == nil && advertised.IsEmpty():
		return nil, transport.ErrRepositoryNotFound
	case err != nil:
		return nil, err
	}

	transport.FilterUnsupportedCapabilities(advertised.Capabilities)

	return advertised, nil
}

// UploadPack implements gitServer.
func (s *sshServer) UploadPack(_ context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if err := request.UploadRequest.Encode(s.input); err != nil {
		return nil, err
	}

	if err := request.UploadHaves.Encode(s.input, true); err != nil {
		return nil, err
	}

	if err := pktline.NewEncoder(s.input).Encodef("done\n"); err != nil {
		return nil, err
	}

	response := packp.NewUploadPackResponse(request)
	if err := response.Decode(io.NopCloser(s.output)); err != nil {
		return nil, fmt.Errorf("reading the response of git-upload-pack: %w", err)
	}

	return response, nil
}

// Close implements gitServer.
func (s *sshServer) Close() error { return s.client.Close() }
