// Package reload reloads files that change while a service runs: user lists, kubeconfigs, certificates and CA certificates.
//
// A Value contains the parsed contents of one file, or of several files that belong together. A Watcher reads the files of all
// values every ten seconds. A file that cannot be read or parsed never replaces the value in use: the error is logged once, and
// the metric environment_broker_files_rejected is 1 until the file is valid again. Load returns an error for an invalid file, so
// a service does not start with an invalid file.
//
// ServerTLS and ClientTLS build the TLS configuration of servers and clients from such values. To reload another file, call Load
// with its parser and Watch with the service's watcher.
package reload
