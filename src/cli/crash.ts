/**
 * From here on, an error that nobody catches (a rejection that nobody handles, too) is told by `report` and ends the process
 * with exit code 1. Node's own report would print every member of the error, URLs and headers among them.
 */
export function endOnCrash(report: (error: unknown) => void): void {
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error: unknown) => {
    try {
      report(error);
    } finally {
      process.exit(1);
    }
  });
}
