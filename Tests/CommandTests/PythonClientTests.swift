import Foundation
import PromiseSystem
import Testing

/// The Python client and a daemon that ends in the middle of an answer.
@Suite struct PythonClientTests {
    private static let script = """
        import os, re, socket, sys, tempfile, threading
        sys.path.insert(0, sys.argv[1])
        import promisefs

        HEAD = "HTTP/1.1 {} X\\r\\nContent-Type: text/event-stream\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"

        def chunk(text):
            return f"{len(text):x}\\r\\n{text}\\r\\n"

        def answered(text):
            path = tempfile.mktemp()
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen()
            def serve():
                connection, _ = listener.accept()
                request = b""
                while b"\\r\\n\\r\\n" not in request:
                    request += connection.recv(65536)
                # Who ends before it has read everything breaks the pipe of who still writes.
                head, _, body = request.partition(b"\\r\\n\\r\\n")
                count = re.search(rb"(?i)content-length: (\\d+)", head)
                while count and len(body) < int(count[1]):
                    body += connection.recv(65536)
                connection.sendall(text.encode())
                connection.close()
            threading.Thread(target=serve, daemon=True).start()
            return promisefs.Domain(path)

        def outcome(events):
            found = []
            try:
                for event in events:
                    found.append(event)
            except promisefs.PromiseError as error:
                found.append(str(error))
            return found

        item = 'event: added\\ndata: {"items": [1, 2]}\\n\\n'
        gathered = 'event: gathered\\ndata: {}\\n\\n'
        print(outcome(answered(HEAD.format(200) + chunk(item) + chunk(gathered) + "0\\r\\n\\r\\n").query("x")))
        print(outcome(answered(HEAD.format(200) + chunk(item)).query("x")))
        print(outcome(answered(HEAD.format(200) + chunk(item) + "0\\r\\n\\r\\n").query("x")))
        print(outcome(answered(HEAD.format(200) + chunk(item)).value_events("com.x")))
        print(outcome(answered("HTTP/1.1 414 X\\r\\nContent-Length: 3\\r\\n\\r\\n<p>").query("x")))
        """

    /// It ended as if that were all: 256 of 12,000 items, and no word.
    @Test(.timeLimit(.minutes(5))) func anAnswerThatBreaksOffIsNoEndOfIt() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let client = folder.appendingPathComponent("../../clients/python").standardized.path
        let words = ["python3", "-c", PythonClientTests.script, client]
        let answer = try #require(
            ChildProcess.exchange(words.map { Array($0.utf8) }, limit: .seconds(120)))
        let lines = String(decoding: answer.output, as: UTF8.self).split(separator: "\n")
        #expect(
            lines == [
                "[1, 2]", "[1, 2, 'the daemon ended in the middle of its answer']",
                "[1, 2, 'the daemon ended before it had told all items']",
                "[('added', {'items': [1, 2]}), 'the daemon ended in the middle of its answer']",
                "['the daemon replied 414 without saying why']",
            ])
    }

    private static let slowScript = """
        import socket, sys, tempfile, threading, time
        sys.path.insert(0, sys.argv[1])
        import promisefs

        def answer(connection):
            request = b""
            while b"\\r\\n\\r\\n" not in request:
                request += connection.recv(65536)
            if b"/v1/ping" not in request:
                time.sleep(5)
            body = b'{"versions": [], "done": true}'
            connection.sendall(b"HTTP/1.1 200 X\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
            connection.close()

        def serve():
            while True:
                threading.Thread(target=answer, args=listener.accept()[:1], daemon=True).start()

        path = tempfile.mktemp()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        threading.Thread(target=serve, daemon=True).start()
        domain = promisefs.Domain(path, timeout=1)
        calls = {
            "status": lambda: domain.status(), "resolve": lambda: domain.resolve("a", "remove"),
            "revert": lambda: domain.revert(["a"]), "evict": lambda: domain.evict(["a"]),
            "restore": lambda: domain.restore(["a"]), "pin": lambda: domain.pin(["a"], "pinned"),
            "sync": lambda: domain.sync(),
        }
        def run(name):
            try:
                calls[name]()
                ends[name] = "done"
            except promisefs.PromiseError as error:
                ends[name] = "no daemon" if "no daemon answers" in str(error) else str(error)
        ends = {}
        threads = [threading.Thread(target=run, args=[name]) for name in calls]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        for name in calls: print(name, ends[name])
        """

    /// What took longer than the limit of a question was said to have no daemon.
    @Test(.timeLimit(.minutes(5))) func workHasNoLimitWhileTheDaemonAnswers() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let client = folder.appendingPathComponent("../../clients/python").standardized.path
        let words = ["python3", "-c", PythonClientTests.slowScript, client]
        let answer = try #require(
            ChildProcess.exchange(words.map { Array($0.utf8) }, limit: .seconds(120)))
        let lines = String(decoding: answer.output, as: UTF8.self).split(separator: "\n")
        #expect(
            lines == [
                "status no daemon", "resolve done", "revert done", "evict done", "restore done",
                "pin done", "sync done",
            ])
    }

    private static let followingScript = """
        import os, socket, sys, tempfile, threading
        sys.path.insert(0, sys.argv[1])
        import promisefs

        HEAD = "HTTP/1.1 200 X\\r\\nContent-Type: text/event-stream\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
        END = "0\\r\\n\\r\\n"
        asked = []

        def page(number):
            text = 'event: changes\\ndata: {"journal": "j", "changes": [{"sequence": %d}]}\\n\\n' % number
            return f"{len(text):x}\\r\\n{text}\\r\\n"

        def outcome(*answers):
            "What is told by a daemon that gives these, one a connection, and is gone then."
            path, found = tempfile.mktemp(), []
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen()
            def serve():
                for answer in answers:
                    connection, _ = listener.accept()
                    request = b""
                    while b"\\r\\n\\r\\n" not in request:
                        request += connection.recv(65536)
                    asked.append(request.split()[1].decode().partition("?")[2])
                    if answer is answers[-1]:
                        os.unlink(path)
                        listener.close()
                    connection.sendall(answer.encode())
                    connection.close()
            threading.Thread(target=serve, daemon=True).start()
            try:
                for changes in promisefs.Domain(path).follow_changes(patience=1):
                    found.append(changes["changes"][0]["sequence"])
            except promisefs.PromiseError as error:
                found += ["died" if "has died and no other one came" in str(error) else str(error), error.exit_status]
            return found

        print(outcome(HEAD + page(1)))
        print(outcome(HEAD + page(1) + END))
        print(outcome(HEAD + page(1), HEAD + page(2) + END))
        print(asked[-1])
        print(outcome(HEAD + page(1) + END, HEAD))
        print(outcome(HEAD + page(1) + END, HEAD + page(2)))
        """

    /// It ended without a word, as it does when the domain was unmounted.
    @Test(.timeLimit(.minutes(5))) func whoFollowsChangesIsToldThatTheDaemonHasDied() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let client = folder.appendingPathComponent("../../clients/python").standardized.path
        let words = ["python3", "-c", PythonClientTests.followingScript, client]
        let answer = try #require(
            ChildProcess.exchange(words.map { Array($0.utf8) }, limit: .seconds(120)))
        let lines = String(decoding: answer.output, as: UTF8.self).split(separator: "\n")
        #expect(
            lines == [
                "[1, 'died', 4]", "[1]",
                // It goes on with the next one.
                "[1, 2]", "since=1&follow=true&journal=j",
                // One that ends may break off what it is asked meanwhile.
                "[1]", "[1, 2, 'died', 4]",
            ])
    }
}
