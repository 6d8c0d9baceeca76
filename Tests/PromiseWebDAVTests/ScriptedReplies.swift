import PromiseTestSupport

/// What PROPFIND says of one file.
func listing(_ reference: String, tag: String = "\"1\"", size: Int = 4) -> String {
    reply(
        "207 Multi-Status", [],
        """
        <multistatus xmlns="DAV:"><response><href>\(reference)</href><propstat><prop><resourcetype/><getetag>\(tag)</getetag>\
        <getcontentlength>\(size)</getcontentlength></prop><status>HTTP/1.1 200 OK</status></propstat></response></multistatus>
        """)
}

/// What a row says of a folder.
let collection = """
    <propstat><prop><resourcetype><collection/></resourcetype></prop><status>HTTP/1.1 200 OK</status></propstat>
    """

/// A multi-status of rows: a reference, and what is said of it.
func rows(_ rows: (reference: String, content: String)...) -> String {
    let text = rows.map { "<response><href>\($0.reference)</href>\($0.content)</response>" }.joined()
    return reply("207 Multi-Status", [], "<multistatus xmlns=\"DAV:\">\(text)</multistatus>")
}
