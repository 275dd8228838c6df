"""Where people meet the package: command line, web server, page, report, and the plain records that these share."""
