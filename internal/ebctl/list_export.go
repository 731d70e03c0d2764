package ebctl

import (
	"context"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// streams reports whether the list is written page by page. Sorting and counting need the whole list. A single page is not
// streamed, except in the CSV format, which only export can write.
func (f listFlags) streams(format output.Format) bool {
	if !format.Streams() || f.sortBy != "" || f.total {
		return false
	}

	return format == output.CSV || f.all || f.limit > 0
}

// export writes the entries while it reads the pages, so that memory usage does not depend on the length of the list. After an
// error, the output is incomplete.
func (l lister[L, E]) export(ctx context.Context, session *session, client *brokerclient.Client, given listFlags) error {
	stream, err := session.format.NewStream(session.Out, l.columns, given.noHeaders)
	if err != nil {
		return err //nolint:wrapcheck // of package output
	}

	var keep func(E) bool
	if l.keep != nil {
		keep = l.keep()
	}

	every := given.all || keep != nil

	for entry, err := range brokerclient.All(func(cursor string) ([]E, string, error) {
		list, err := l.fetch(ctx, client, pageQuery{cursor: cursor, size: given.pageSize(every)})
		page, data := l.parts(&list)

		if !every && given.limit == 0 { // only the first page
			noteMore(session, page)
			page.Cursor = ""
		}

		return *data, page.Cursor, err
	}) {
		if err != nil {
			return err
		}

		if keep != nil && !keep(entry) {
			continue
		}

		if err := stream.Write(entry, l.id(entry)); err != nil {
			return err //nolint:wrapcheck // of package output
		}

		if stream.Count() == given.limit {
			break
		}
	}

	return stream.Close() //nolint:wrapcheck // of package output
}

// noteMore prints a note if a list has more entries than its first page.
func noteMore(session *session, page *operatorapi.Page) {
	if page.Cursor != "" {
		fmt.Fprintf(session.Err, "Only the first %d entries are listed. Use --all-pages to list all entries.\n", page.Count)
	}
}

// runtimeColumns returns the CSV columns of instances and runtimes.
func runtimeColumns() []string {
	return []string{
		"instanceID", "name", "servicePlanName", "servicePlanID", "provider", "region", "subAccountRegion", "platform", "globalAccountID", "subAccountID",
		"subscriptionAccountID", "runtimeID", "shootName", "maintenanceVersion", "kubernetesVersion", "kymaVersion", "deletionProtection", "labels",
		"status.state", "status.suspended", "status.createdAt", "status.modifiedAt", "status.expiresAt", "status.expiredAt", "status.deletedAt",
		"status.lastOperation.operationID", "status.lastOperation.kind", "status.lastOperation.state", "status.lastOperation.problem.message",
		"leftover.id", "dashboardURL",
	}
}

// operationColumns returns the CSV columns of operations.
func operationColumns() []string {
	return []string{
		"operationID", "instanceID", "instanceName", "bindingID", "kind", "state", "stage", "step", "createdAt", "startedAt", "finishedAt", "updatedAt",
		"orderedBy", "predecessorID", "problem.reason", "problem.component", "problem.message", "description",
	}
}

// orchestrationColumns returns the CSV columns of orchestrations.
func orchestrationColumns() []string {
	return []string{
		"orchestrationID", "type", "state", "description", "percent", "wave", "createdAt", "updatedAt", "appliedAt", "orderedBy", "appliedBy",
		"parameters.dryRun",
	}
}

// targetColumns returns the CSV columns of the targets of an orchestration.
func targetColumns() []string {
	return []string{
		"orchestrationID", "operationID", "instanceID", "state", "wave", "description", "servicePlanName", "shootName", "runtimeID", "globalAccountID",
		"subAccountID", "region", "fromVersion", "toVersion", "maintenanceWindowBegin", "dryRun",
	}
}

// auditColumns returns the CSV columns of the audit log.
func auditColumns() []string {
	return []string{
		"at", "action", "status", "code", "instanceID", "operationID", "bindingID", "accountID", "by.user", "by.originator", "by.address", "reason", "before", "after", "id",
	}
}

// credentialColumns returns the CSV columns of credentials.
func credentialColumns() []string {
	return []string{"instanceID", "name", "system", "issuedAt", "validUntil", "renewAt", "problem", "obstacle"}
}
