// Package reload keeps values that a service reads from files up to date while it runs: user lists, kubeconfigs, certificates and their
// authorities.
//
// A Value holds the parsed contents of one file, or of several files that belong together. A Watcher reads the files of all values every ten
// seconds. A file that cannot be read or parsed never replaces the value in use: the error is logged once, and the metric
// environment_broker_files_rejected is 1 until the file is valid again. Load returns an error for an invalid file, so a service does not
// start with one.
//
// ServerTLS and ClientTLS build the TLS side of servers and clients from such values. To follow another file, call Load with its parser and
// Watch with the service's watcher.
package reload
